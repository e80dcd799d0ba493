/**
 * An MCP server of all versions that answers for items that it does not have in the words of other servers: of the
 * official SDKs, of FastMCP, and of servers written by hand.
 */
import type { ServerResponse } from "node:http";
import type { ProofContext } from "../proofs/prove.ts";
import { startScripted } from "./scripted-server.ts";

/** A JSON-RPC response without its envelope. */
interface Reply {
  readonly result?: unknown;
  readonly error?: { readonly code: number; readonly message: string; readonly data?: unknown };
  /** 200 by default. */
  readonly status?: number;
  /** Sends a message to the log first. */
  readonly isLogged?: boolean;
}

type Refuse = (name: string) => Reply;

/** How a server answers requests for items that it does not have. */
interface Dialect {
  readonly tool: Refuse;
  readonly prompt: Refuse;
  readonly resource: Refuse;
  readonly task: Refuse;
  /** Answer to a completion for such a prompt or resource. */
  readonly completion: Refuse;
  /** The server answers all completions in this way, because it does not support them. */
  readonly completesNothing?: boolean;
}

const error = (code: number, message: string, data?: unknown): Reply => ({ error: { code, message, data } });
const failed = (text: string): Reply => ({ result: { isError: true, content: [{ type: "text", text }] } });
const completed = (...values: string[]): Reply => ({ result: { completion: { values, hasMore: false } } });

/** Returns a dialect with one error for all kinds of items. */
function uniform(refuse: Refuse): Dialect {
  return { tool: refuse, prompt: refuse, resource: refuse, task: refuse, completion: refuse };
}

const FAST_MCP: Dialect = {
  tool: (name) => failed(`Unknown tool: '${name}'`),
  prompt: (name) => error(-32_602, `Unknown prompt: '${name}'`),
  resource: (name) => error(-32_602, `Resource not found: '${name}'`, { uri: name }),
  task: () => error(-32_603, "Internal server error"),
  completion: () => completed("anna"),
};

export const DIALECTS: Readonly<Record<string, Dialect>> = {
  "TypeScript SDK": {
    tool: (name) => failed(`MCP error -32602: Tool ${name} not found`),
    prompt: (name) => error(-32_602, `MCP error -32602: Prompt ${name} not found`),
    resource: (name) => error(-32_602, `MCP error -32602: Resource ${name} not found`),
    task: (name) => error(-32_602, `MCP error -32602: Task not found: ${name}`),
    completion: (name) => error(-32_602, `MCP error -32602: Prompt ${name} not found`),
  },
  "Python SDK": {
    tool: (name) => failed(`Unknown tool: ${name}`),
    prompt: (name) => error(0, `Unknown prompt: ${name}`),
    resource: (name) => error(0, `Unknown resource: ${name}`),
    task: (name) => error(0, `Task not found: ${name}`),
    completion: () => completed(),
  },
  FastMCP: FAST_MCP,
  "Go SDK": {
    tool: (name) => error(-32_602, `unknown tool "${name}"`),
    prompt: (name) => error(-32_602, `unknown prompt "${name}"`),
    resource: (name) => error(-32_002, "Resource not found", { uri: name }),
    task: () => error(-32_601, "method not found"),
    completion: () => error(-32_601, "method not found"),
    completesNothing: true,
  },
  "handlers that throw": uniform((name) => error(-32_603, `ENOENT: no such file or directory, open '${name}'`)),
  "statuses of HTTP": uniform((name) => ({ ...error(-32_602, `no ${name}`), status: 400 })),
  "a failure of HTTP": uniform((name) => ({ ...error(-32_603, `no ${name}`), status: 500 })),
  "a log": uniform((name) => ({ ...error(-32_602, `no ${name}`), isLogged: true })),
  "empty results": {
    ...uniform((name) => error(-32_602, name)),
    tool: () => ({ result: { content: [], isError: true } }),
    resource: () => ({ result: { contents: [] } }),
    completion: () => completed(),
  },
};

interface DialectServer {
  readonly port: number;
  /** Methods of the requests that arrived, oldest first. */
  methods(): readonly string[];
}

interface ReceivedMessage {
  readonly id?: number | string;
  readonly method?: string;
  readonly params?: {
    readonly name?: string;
    readonly uri?: string;
    readonly taskId?: string;
    readonly ref?: { readonly name?: string; readonly uri?: string };
    readonly protocolVersion?: string;
    readonly notifications?: unknown;
  };
}

/** @param items names of its tools and prompts, the last segments of its notes and pages, and the ids of its tasks */
export async function startDialectServer(
  context: ProofContext,
  items: readonly string[],
  dialect: Dialect = FAST_MCP,
): Promise<DialectServer> {
  const { port, received } = await startScripted(context, ({ body }, response) => {
    // The gateway posts messages one by one.
    const message = (body ?? {}) as ReceivedMessage;
    if (message.id === undefined) return void response.writeHead(body === undefined ? 405 : 202).end();
    if (message.method === "subscriptions/listen") return acknowledge(response, message);
    if (message.method === "initialize") response.setHeader("mcp-session-id", "one");
    send(response, message.id, answer(message, dialect, items));
  });
  return { port, methods: () => received.map(({ body }) => (body as ReceivedMessage | undefined)?.method ?? "") };
}

/** Acknowledges all subscriptions and keeps the stream open. */
function acknowledge(response: ServerResponse, { id, params = {} }: ReceivedMessage): void {
  const agreed = {
    notifications: params.notifications,
    _meta: { "io.modelcontextprotocol/subscriptionId": id },
  };
  const message = { jsonrpc: "2.0", method: "notifications/subscriptions/acknowledged", params: agreed };
  response.writeHead(200, { "content-type": "text/event-stream" }).write(`data: ${JSON.stringify(message)}\n\n`);
}

function send(response: ServerResponse, id: number | string, { status, isLogged, ...reply }: Reply): void {
  const text = JSON.stringify({ jsonrpc: "2.0", id, ...reply });
  if (isLogged === true) {
    const log = '{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"error","data":"not found"}}';
    response.writeHead(200, { "content-type": "text/event-stream" }).end(`data: ${log}\n\ndata: ${text}\n\n`);
  } else response.writeHead(status ?? 200, { "content-type": "application/json" }).end(text);
}

const PROMPT_RESULT = { messages: [{ role: "user", content: { type: "text", text: "hello" } }] };

function answer({ method, params = {} }: ReceivedMessage, dialect: Dialect, items: readonly string[]): Reply {
  const { name = "", uri = "", taskId = "", ref = {}, protocolVersion } = params;
  const [notes, pages] = [items.map((item) => `note://${item}`), items.map((item) => `page://${item}/{id}`)];
  switch (method) {
    case "initialize": {
      const capabilities = { tools: {}, prompts: {}, resources: { subscribe: true }, completions: {}, tasks: {} };
      return { result: { protocolVersion, capabilities, serverInfo: { name: "dialect", version: "1" } } };
    }
    case "tools/list":
      return { result: { tools: items.map((item) => ({ name: item, inputSchema: { type: "object" } })) } };
    case "prompts/list":
      return { result: { prompts: items.map((item) => ({ name: item })) } };
    case "resources/list":
      return { result: { resources: notes.map((note) => ({ uri: note, name: note })) } };
    case "resources/templates/list":
      return { result: { resourceTemplates: pages.map((page) => ({ uriTemplate: page, name: page })) } };
    case "tools/call":
      return items.includes(name) ? { result: { content: [] } } : dialect.tool(name);
    case "prompts/get":
      return items.includes(name) ? { result: PROMPT_RESULT } : dialect.prompt(name);
    case "resources/read": {
      const isKnown = notes.includes(uri) || pages.some((page) => uri.startsWith(page.replace("{id}", "")));
      return isKnown ? { result: { contents: [{ uri, text: "text" }] } } : dialect.resource(uri);
    }
    case "tasks/get":
    case "tasks/cancel":
      return items.includes(taskId) ? { result: { taskId, status: "working" } } : dialect.task(taskId);
    case "tasks/result":
      return items.includes(taskId) ? { result: { content: [] } } : dialect.task(taskId);
    case "completion/complete": {
      const of = ref.name ?? ref.uri ?? "";
      const isKnown = dialect.completesNothing !== true && [...items, ...notes, ...pages].includes(of);
      return isKnown ? completed("anna") : dialect.completion(of);
    }
    // Subscriptions are accepted for everything.
    default:
      return { result: {} };
  }
}
