/**
 * The prompt guards of one backend in one place, compiled once, and the guards in force for one request: they check the
 * client's body, the whole answer or the streamed one. The LLM handler uses both.
 */
import type { PromptGuard } from "../../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { HeaderList } from "../../../lib/header-list.ts";
import type { BodyStream } from "../../exchange/body.ts";
import type { Reply, RoutedExchange } from "../../exchange/exchange.ts";
import type { GuardPhase } from "../../exchange/guard-checks.ts";
import type { JsonObject } from "../shared/json.ts";
import { GuardChain, type GuardResult, type Mask } from "./chain.ts";
import type { GuardDeps } from "./guard.ts";
import { compileGuard } from "./index.ts";
import { guardStream, type GuardedClient } from "./window.ts";

/** Undefined members cost a request nothing. */
export interface PromptGuards {
  readonly request: GuardChain | undefined;
  readonly response: GuardChain | undefined;
  /** Whether streamed answers are checked as well. */
  readonly streaming: boolean;
}

/** @throws ConfigError for a guard that this version does not know */
export function compilePromptGuards(policy: PromptGuard | undefined, deps: GuardDeps): PromptGuards | undefined {
  if (policy === undefined) return undefined;
  const chain = (nodes: PromptGuard["request"], phase: GuardPhase): GuardChain | undefined =>
    nodes.length === 0
      ? undefined
      : new GuardChain(
          nodes.map((node) => compileGuard(node, deps)),
          phase,
        );
  return {
    request: chain(policy.request, "Request"),
    response: chain(policy.response, "Response"),
    streaming: policy.streaming,
  };
}

/** The result of a check of a whole answer. */
export type CheckedAnswer = { readonly reply: Reply } | { readonly reply: undefined; readonly isMasked: boolean };

/** The guards in force for one request. */
export class RequestGuards {
  readonly #guards: PromptGuards;
  readonly #client: GuardedClient;
  readonly #exchange: RoutedExchange;

  constructor(guards: PromptGuards, client: GuardedClient, exchange: RoutedExchange) {
    this.#guards = guards;
    this.#client = client;
    this.#exchange = exchange;
  }

  get checksAnswers(): boolean {
    return this.#guards.response !== undefined;
  }

  /** Checks the client's body and masks it. @returns the reply of a rejection; undefined when the request goes on */
  async checkRequest(body: JsonObject): Promise<Reply | undefined> {
    const { texts } = this.#client;
    const result = await this.#guards.request?.run({
      exchange: this.#exchange,
      texts: () => texts.requestTexts(body),
      messages: () => texts.requestMessages(body),
      choices: () => [],
      answerHeaders: undefined,
      request: body,
      onMask: (mask) => (mask.action === "replace" ? texts.replaceMessages(body, mask.messages) : writeMask(mask)),
    });
    return result?.rejected === true ? replyOf(result) : undefined;
  }

  /** Checks a whole answer in the client's format, and masks it. */
  async checkAnswer(answer: JsonObject, headers: HeaderList): Promise<CheckedAnswer> {
    const { texts } = this.#client;
    const result = await this.#guards.response?.run({
      exchange: this.#exchange,
      texts: () => texts.answerTexts(answer),
      messages: () => [],
      choices: () => texts.answerChoices(answer),
      answerHeaders: headers,
      request: undefined,
      onMask: writeMask,
    });
    if (result?.rejected === true) return { reply: replyOf(result) };
    return { reply: undefined, isMasked: result?.isMasked === true };
  }

  /** Returns the stream with its windows checked, or unchanged where streams are not checked. */
  checkStream(stream: BodyStream, headers: HeaderList, limitBytes: number): BodyStream {
    const { response: chain, streaming } = this.#guards;
    if (chain === undefined || !streaming) return stream;
    return guardStream(stream, { chain, client: this.#client, exchange: this.#exchange, headers, limitBytes });
  }
}

function writeMask(mask: Mask): void {
  if (mask.action === "mask") for (const { text, masked } of mask.changes) text.replace(masked);
}

function replyOf({ response, rejection }: Extract<GuardResult, { readonly rejected: true }>): Reply {
  const headers = new HeaderList();
  if (rejection !== undefined) {
    headers.add("content-type", "text/plain");
    return { status: rejection.status, headers, body: Buffer.from(rejection.body), upstream: false };
  }
  for (const { name, value } of response.headers) headers.add(name.toLowerCase(), value);
  if (headers.get("content-type") === undefined) headers.add("content-type", "text/plain");
  return { status: response.status, headers, body: Buffer.from(response.message), upstream: false };
}
