/**
 * What the official conformance suite of MCP expects a server to have: tools, prompts and resources with fixed names and
 * answers. The servers of ./servers.ts offer it, and ./conformance.test.ts runs the suite against them.
 */
export type Params = Readonly<Record<string, unknown>>;

/** What the fixtures of every version may do while a request runs. */
export interface Running {
  readonly progressToken: string | number | undefined;
  notify(method: string, params: Params): Promise<void>;
}

/** What a server with sessions may do besides. */
interface SessionRunning extends Running {
  ask(method: string, params: Params): Promise<unknown>;
  /** Closes the stream of the call while it goes on. */
  closeStream(): void;
}

type Tool<R extends Running> = (input: Params, running: R) => object | Promise<object>;

interface Prompt<R extends Running> {
  readonly names: readonly string[];
  readonly get: (values: Params, running: R) => object | Promise<object>;
}

/** Tools and prompts by name. */
export interface Fixtures<R extends Running> {
  readonly tools: Readonly<Record<string, Tool<R>>>;
  readonly prompts: Readonly<Record<string, Prompt<R>>>;
  /** Schemas of the input of tools that have one; others take anything. */
  readonly schemas: Readonly<Record<string, object>>;
}

/** One red pixel. */
const PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg==";
const WAV = "UklGRiQAAABXQVZFZm10IBAAAAABAAEARKwAAIhYAQACABAAZGF0YQAAAAA=";
const IMAGE = { type: "image", data: PNG, mimeType: "image/png" };

export const textOf = (text: string): object => ({ type: "text", text });
export const said = (text: string): object => ({ content: [textOf(text)] });
const messages = (...contents: readonly object[]): object => ({
  messages: contents.map((content) => ({ role: "user", content })),
});
const embedded = (uri: string, mimeType: string, text: string): object => ({
  type: "resource",
  resource: { uri, mimeType, text },
});

const DEFAULTS_SCHEMA = {
  type: "object",
  properties: {
    name: { type: "string", default: "John Doe" },
    age: { type: "integer", default: 30 },
    score: { type: "number", default: 95.5 },
    status: { type: "string", enum: ["active", "inactive", "pending"], default: "active" },
    verified: { type: "boolean", default: true },
  },
};
const THREE = ["option1", "option2", "option3"];
const TITLED = THREE.map((_option, index) => ({ const: `value${index + 1}`, title: `Option ${index + 1}` }));
const ENUMS_SCHEMA = {
  type: "object",
  properties: {
    untitledSingle: { type: "string", enum: THREE },
    titledSingle: { type: "string", oneOf: TITLED },
    legacyEnum: { type: "string", enum: ["opt1", "opt2", "opt3"], enumNames: ["One", "Two", "Three"] },
    untitledMulti: { type: "array", items: { type: "string", enum: THREE } },
    titledMulti: { type: "array", items: { anyOf: TITLED } },
  },
};
const USER_SCHEMA = {
  type: "object",
  properties: { username: { type: "string" }, email: { type: "string" } },
  required: ["username", "email"],
};

async function elicit(message: string, requestedSchema: object, running: SessionRunning): Promise<object> {
  const answer = await running.ask("elicitation/create", { message, requestedSchema });
  return said(`Elicitation completed: ${JSON.stringify(answer)}`);
}

const TOOLS: Fixtures<Running>["tools"] = {
  test_simple_text: () => said("This is a simple text response for testing."),
  test_image_content: () => ({ content: [IMAGE] }),
  test_audio_content: () => ({ content: [{ type: "audio", data: WAV, mimeType: "audio/wav" }] }),
  test_embedded_resource: () => ({
    content: [embedded("test://embedded-resource", "text/plain", "This is an embedded resource content.")],
  }),
  test_multiple_content_types: () => ({
    content: [
      textOf("Multiple content types test:"),
      IMAGE,
      embedded("test://mixed-content-resource", "application/json", '{"test":"data","value":123}'),
    ],
  }),
  test_error_handling: () => ({ isError: true, ...said("This tool intentionally returns an error for testing") }),
  json_schema_2020_12_tool: () => said("ok"),
  test_tool_with_progress: async (_input, { notify, progressToken }) => {
    for (const progress of [0, 50, 100])
      if (progressToken !== undefined) await notify("notifications/progress", { progressToken, progress, total: 100 });
    return said("done");
  },
};

/** Keywords of JSON Schema 2020-12, which have to arrive as they stand. */
const FULL_SCHEMA = {
  $schema: "https://json-schema.org/draft/2020-12/schema",
  type: "object",
  $defs: {
    address: {
      $anchor: "addressDef",
      type: "object",
      properties: { street: { type: "string" }, city: { type: "string" } },
    },
  },
  properties: {
    name: { type: "string" },
    address: { $ref: "#/$defs/address" },
    contactMethod: { type: "string", enum: ["phone", "email"] },
    phone: { type: "string" },
    email: { type: "string" },
  },
  allOf: [{ anyOf: [{ required: ["phone"] }, { required: ["email"] }] }],
  if: { properties: { contactMethod: { const: "phone" } }, required: ["contactMethod"] },
  // oxlint-disable-next-line unicorn/no-thenable -- a keyword of JSON Schema, in an object that is only printed
  then: { required: ["phone"] },
  else: { required: ["email"] },
  additionalProperties: false,
};

const PROMPTS: Fixtures<Running>["prompts"] = {
  test_simple_prompt: { names: [], get: () => messages(textOf("This is a simple prompt for testing.")) },
  test_prompt_with_arguments: {
    names: ["arg1", "arg2"],
    get: ({ arg1, arg2 }) => messages(textOf(`Prompt with arguments: arg1='${String(arg1)}', arg2='${String(arg2)}'`)),
  },
  test_prompt_with_embedded_resource: {
    names: ["resourceUri"],
    get: ({ resourceUri }) =>
      messages(
        embedded(String(resourceUri), "text/plain", "Embedded resource content for testing."),
        textOf("Please process the embedded resource above."),
      ),
  },
  test_prompt_with_image: { names: [], get: () => messages(IMAGE, textOf("Please analyze the image above.")) },
};

/** What servers of every version have. */
const COMMON: Fixtures<Running> = {
  tools: TOOLS,
  prompts: PROMPTS,
  schemas: { json_schema_2020_12_tool: FULL_SCHEMA },
};

/** What servers with sessions have besides. */
export const OF_SESSIONS: Fixtures<SessionRunning> = {
  prompts: {},
  schemas: {},
  tools: {
    test_tool_with_logging: async (_input, { notify }) => {
      for (const data of ["Tool execution started", "Tool processing data", "Tool execution completed"])
        await notify("notifications/message", { level: "info", data });
      return said("logged");
    },
    test_sampling: async ({ prompt }, { ask }) => {
      const messages = [{ role: "user", content: textOf(String(prompt)) }];
      return said(`LLM response: ${JSON.stringify(await ask("sampling/createMessage", { messages, maxTokens: 100 }))}`);
    },
    test_elicitation: ({ message }, running) => elicit(String(message), USER_SCHEMA, running),
    test_elicitation_sep1034_defaults: (_input, running) => elicit("Check these", DEFAULTS_SCHEMA, running),
    test_elicitation_sep1330_enums: (_input, running) => elicit("Choose", ENUMS_SCHEMA, running),
    test_reconnection: (_input, { closeStream }) => {
      closeStream();
      return said("said after the stream was closed");
    },
  },
};

const TEMPLATE = /^test:\/\/template\/(.+)\/data$/;
const TEXTS: Readonly<Record<string, object>> = {
  "test://static-text": { mimeType: "text/plain", text: "This is the content of the static text resource." },
  "test://static-binary": { mimeType: "image/png", blob: PNG },
  "test://watched-resource": { mimeType: "text/plain", text: "watched" },
};

/** Returns nothing for a resource that is not there. */
function readResource(uri: string): object | undefined {
  const [, id] = TEMPLATE.exec(uri) ?? [];
  if (id === undefined) return TEXTS[uri] && { contents: [{ uri, ...TEXTS[uri] }] };
  const text = JSON.stringify({ id, templateTest: true, data: `Data for ID: ${id}` });
  return { contents: [{ uri, mimeType: "application/json", text }] };
}

/** Returns nothing for what is not there. */
export type Handler<R extends Running> = (
  params: Params,
  running: R,
) => object | undefined | Promise<object | undefined>;

export type Method =
  | "tools/list"
  | "tools/call"
  | "prompts/list"
  | "prompts/get"
  | "resources/list"
  | "resources/templates/list"
  | "resources/read"
  | "completion/complete";

const argumentsOf = (params: Params): Params => (params["arguments"] ?? {}) as Params;

/** Returns what a server answers to each method. */
export function createHandlers<R extends Running>(more: Fixtures<R>): Readonly<Record<Method, Handler<R>>> {
  const tools: Fixtures<R>["tools"] = { ...COMMON.tools, ...more.tools };
  const prompts: Fixtures<R>["prompts"] = { ...COMMON.prompts, ...more.prompts };
  const schemas = { ...COMMON.schemas, ...more.schemas };
  return {
    "tools/list": () => ({
      tools: Object.keys(tools).map((name) => ({
        name,
        description: `The tool ${name}`,
        inputSchema: schemas[name] ?? { type: "object" },
      })),
    }),
    "tools/call": (params, running) => tools[String(params["name"])]?.(argumentsOf(params), running),
    "prompts/list": () => ({
      prompts: Object.entries(prompts).map(([name, { names }]) => ({
        name,
        description: `The prompt ${name}`,
        arguments: names.map((each) => ({ name: each, description: each, required: true })),
      })),
    }),
    "prompts/get": (params, running) => prompts[String(params["name"])]?.get(argumentsOf(params), running),
    "resources/list": () => ({
      resources: Object.keys(TEXTS).map((uri) => ({ uri, name: uri, description: `The resource ${uri}` })),
    }),
    "resources/templates/list": () => ({
      resourceTemplates: [{ uriTemplate: "test://template/{id}/data", name: "template", description: "A template" }],
    }),
    "resources/read": ({ uri }) => readResource(String(uri)),
    "completion/complete": () => ({ completion: { values: ["paris", "park"], total: 2, hasMore: false } }),
  };
}
