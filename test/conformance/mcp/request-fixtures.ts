/**
 * What the conformance suite expects of a server of 2026-07-28 only: tools and a prompt that return what they ask of the
 * client and keep their state with it, checks of the client's capabilities, headers that repeat arguments, and changes
 * that are announced to those who listen.
 */
import {
  inputRequired,
  inputResponse,
  MissingRequiredClientCapabilityError,
  type ClientCapabilities,
} from "@modelcontextprotocol/server";
import { said, textOf, type Fixtures, type Params, type Running } from "./fixtures.ts";

type Questions = NonNullable<Parameters<typeof inputRequired>[0]["inputRequests"]>;

/** What a request brought, and what its handler may do. */
export interface RequestRunning extends Running {
  readonly capabilities: ClientCapabilities;
  /** What the client answered to earlier questions, by key. */
  readonly answers: Params | undefined;
  /** The payload of `seal` that the client brought back; the server has checked its integrity. */
  readonly state: unknown;
  seal(payload: unknown): Promise<string>;
  log(data: string): Promise<void>;
  /** Announces that a list has changed. */
  announce(list: "tools" | "prompts"): void;
}

const property = (name: string, type: string): object => ({
  type: "object",
  properties: { [name]: { type } },
  required: [name],
});
const elicit = (message: string, name: string, type = "string"): Questions[string] =>
  // A literal schema of one property has the type that the SDK spells out.
  inputRequired.elicit({ message, requestedSchema: property(name, type) as never });
const sample = (text: string): Questions[string] =>
  inputRequired.createMessage({
    messages: [{ role: "user", content: { type: "text", text } }],
    maxTokens: 100,
  });

const NAME: Questions = { user_name: elicit("What is your name?", "name") };
const CONFIRM: Questions = { confirm: elicit("Please confirm", "ok", "boolean") };
const THREE: Questions = { ...NAME, greeting: sample("Generate a greeting"), client_roots: inputRequired.listRoots() };

const isAnswered = (questions: Questions, { answers }: RequestRunning): boolean =>
  Object.keys(questions).every((key) => inputResponse(answers, key).kind !== "missing");
const answersOf = ({ answers }: RequestRunning): object => said(JSON.stringify(answers));

/** Returns a tool that asks once, and keeps nothing. */
const asking =
  (questions: Questions) =>
  (_input: Params, running: RequestRunning): object =>
    isAnswered(questions, running) ? answersOf(running) : inputRequired({ inputRequests: questions });

/** Returns a tool that asks once, and recognises what it gave the client to keep. */
const keeping =
  (questions: Questions) =>
  async (_input: Params, running: RequestRunning): Promise<object> =>
    running.state === "asked" && isAnswered(questions, running)
      ? said(`state-ok ${JSON.stringify(running.answers)}`)
      : inputRequired({ inputRequests: questions, requestState: await running.seal("asked") });

const ROUNDS: readonly Questions[] = [
  { step1: elicit("Step 1: What is your name?", "name") },
  { step2: elicit("Step 2: What is your favorite color?", "color") },
];

export const OF_REQUESTS: Fixtures<RequestRunning> = {
  tools: {
    test_input_required_result_elicitation: asking(NAME),
    test_input_required_result_sampling: asking({ capital_question: sample("What is the capital of France?") }),
    test_input_required_result_list_roots: asking({ client_roots: inputRequired.listRoots() }),
    test_input_required_result_request_state: keeping(CONFIRM),
    test_input_required_result_tampered_state: keeping(CONFIRM),
    test_input_required_result_multiple_inputs: keeping(THREE),
    test_input_required_result_multi_round: async (_input, running) => {
      const round = typeof running.state === "number" ? running.state + 1 : 0;
      const inputRequests = ROUNDS[round];
      if (inputRequests === undefined) return answersOf(running);
      return inputRequired({ inputRequests, requestState: await running.seal(round) });
    },
    test_input_required_result_capabilities: (_input, { capabilities }) =>
      inputRequired({
        inputRequests: {
          ...(capabilities.elicitation === undefined ? {} : NAME),
          ...(capabilities.sampling === undefined ? {} : { greeting: sample("Generate a greeting") }),
        },
      }),
    test_missing_capability: (_input, { capabilities }) => {
      if (capabilities.sampling !== undefined) return said("sampling is declared");
      throw new MissingRequiredClientCapabilityError({ requiredCapabilities: { sampling: {} } });
    },
    test_streaming_elicitation: async (input, running) => {
      await running.notify("notifications/progress", { progressToken: "streamed", progress: 1 });
      return asking(NAME)(input, running);
    },
    test_logging_tool: async (_input, { log }) => {
      await log("started");
      return said("logged");
    },
    test_custom_headers: ({ region }) => said(`region ${String(region)}`),
    test_trigger_tool_change: (_input, { announce }) => {
      announce("tools");
      return said("announced");
    },
    test_trigger_prompt_change: (_input, { announce }) => {
      announce("prompts");
      return said("announced");
    },
  },
  prompts: {
    test_input_required_result_prompt: {
      names: [],
      get: (_values, running) => {
        const questions = { user_context: elicit("What context should the prompt use?", "context") };
        if (!isAnswered(questions, running)) return inputRequired({ inputRequests: questions });
        return { messages: [{ role: "user", content: textOf(JSON.stringify(running.answers)) }] };
      },
    },
  },
  schemas: {
    test_custom_headers: {
      type: "object",
      properties: { region: { type: "string", "x-mcp-header": "Region" } },
      required: ["region"],
    },
  },
};
