/** Targets of a virtual MCP server without sockets, for tests of the multiplexer: each answers by a table of methods. */
import { randomBytes } from "node:crypto";
import { HeaderList } from "../../../src/lib/header-list.ts";
import { McpPrefixMode } from "../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import type { RoutedExchange } from "../../../src/proxy/exchange/exchange.ts";
import { readMessage, type Message } from "../../../src/proxy/mcp/message/message.ts";
import { findMethod } from "../../../src/proxy/mcp/methods.ts";
import type { ClientMessage, Multiplexer } from "../../../src/proxy/mcp/multiplex/multiplexer.ts";
import { Naming } from "../../../src/proxy/mcp/multiplex/naming/names.ts";
import { OpenStreams } from "../../../src/proxy/mcp/multiplex/streams/open-streams.ts";
import type { ServerOptions } from "../../../src/proxy/mcp/multiplex/server.ts";
import { createVirtualServer } from "../../../src/proxy/mcp/multiplex/virtual-server.ts";
import { Seal } from "../../../src/proxy/mcp/session/seal.ts";
import type { Session, TargetSession } from "../../../src/proxy/mcp/session/session.ts";
import type { McpAnswer, Target, TargetMessage } from "../../../src/proxy/mcp/targets/target.ts";

/** A message that a target got. */
export interface Received {
  readonly id?: unknown;
  readonly method?: string;
  readonly params?: Readonly<Record<string, unknown>>;
  readonly result?: unknown;
  readonly error?: unknown;
}

/**
 * What a target does with a request: a result, an error, a list of messages before it (a stream), or an HTTP error.
 * Messages are objects, or texts where bytes matter.
 */
export type Behaviour =
  | { readonly result: unknown; readonly before?: readonly unknown[] }
  | { readonly error: { readonly code: number; readonly message: string }; readonly before?: readonly unknown[] }
  | { readonly status: number; readonly text: string }
  | { readonly stream: AsyncIterable<unknown> };

export type Behaviours = Readonly<Record<string, (received: Received) => Behaviour>>;

export interface ScriptedTarget extends Target {
  /** Everything that it got, in order. */
  readonly received: Received[];
  /** Headers of its requests, as far as guardrails edited them. */
  readonly headers: HeaderList;
  /** What it does next; tests may change it. */
  behaviours: Behaviours;
  /** Messages of its GET streams; each call of `listen` takes one. undefined: it offers none. */
  streams: AsyncIterable<unknown>[] | undefined;
  cancelled: number;
  /** Number of sessions that were ended. */
  ended: number;
}

const DEFAULT_ERROR = { error: { code: -32_601, message: "Method not found" } };

export function scriptedTarget(name: string, behaviours: Behaviours): ScriptedTarget {
  const target: ScriptedTarget = {
    name,
    isPinned: false,
    received: [],
    headers: new HeaderList(["x-client", "kept", "x-secret", "1"]),
    behaviours,
    streams: undefined,
    cancelled: 0,
    ended: 0,
    send({ message, editHeaders }: TargetMessage, session: Session): Promise<McpAnswer> {
      const received = parse(message);
      target.received.push(received);
      editHeaders?.(target.headers);
      session.target(name).entered = true;
      if (message.kind !== "request") return Promise.resolve(answer({ status: 202 }));
      const behave = target.behaviours[received.method ?? ""];
      return Promise.resolve(answerOf(target, message.id ?? "", behave?.(received) ?? DEFAULT_ERROR));
    },
    listen(): Promise<McpAnswer> {
      const messages = target.streams?.shift();
      if (messages === undefined) return Promise.resolve(answer({ status: 405, body: Buffer.from("no stream") }));
      return Promise.resolve(streaming(target, messages));
    },
    end() {
      target.ended++;
      return Promise.resolve();
    },
  };
  return target;
}

function answerOf(target: ScriptedTarget, id: string, behaviour: Behaviour): McpAnswer {
  if ("status" in behaviour) return answer({ status: behaviour.status, body: Buffer.from(behaviour.text) });
  if ("stream" in behaviour) return streaming(target, behaviour.stream);
  const { before, ...outcome } = behaviour;
  const [[kind, value] = ["result", {}]] = Object.entries(outcome);
  const text = typeof value === "string" ? value : JSON.stringify(value);
  const last = messageOf(`{"jsonrpc":"2.0","id":${id},"${kind}":${text}}`);
  if (before === undefined) return answer({ only: last, messages: yieldAll([last]) });
  return answer({ messages: yieldAll([...before.map(messageOf), last]) });
}

function streaming(target: ScriptedTarget, messages: AsyncIterable<unknown>): McpAnswer {
  async function* read(): AsyncGenerator<Message> {
    for await (const message of messages) yield messageOf(message);
  }
  return answer({ messages: read(), cancel: () => void target.cancelled++ });
}

function answer(parts: Partial<McpAnswer>): McpAnswer {
  const headers = new HeaderList();
  const messages = yieldAll([]);
  return { status: 200, headers, only: undefined, messages, body: undefined, cancel: () => undefined, ...parts };
}

async function* yieldAll(messages: readonly Message[]): AsyncGenerator<Message> {
  yield* messages;
}

/** A stream that a test writes to. */
export class MessageChannel implements AsyncIterable<unknown> {
  readonly #ready: unknown[] = [];
  #isEnded = false;
  #wake: (() => void) | undefined;

  send(message: unknown): void {
    this.#ready.push(message);
    this.#wake?.();
  }

  end(): void {
    this.#isEnded = true;
    this.#wake?.();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<unknown> {
    for (;;) {
      while (this.#ready.length > 0) yield this.#ready.shift();
      if (this.#isEnded) return;
      await new Promise<void>((resolve) => (this.#wake = resolve));
    }
  }
}

/** Reads a message from an object or a text. */
function messageOf(value: unknown): Message {
  const text = typeof value === "string" ? value : JSON.stringify({ jsonrpc: "2.0", ...(value as object) });
  const message = readMessage(Buffer.from(text));
  if ("kind" in message) return message;
  throw new Error(`${message.reason}: ${text}`);
}

function parse({ bytes }: Message): Received & Record<string, unknown> {
  // The tests know what they sent.
  return JSON.parse(bytes.toString()) as Received & Record<string, unknown>;
}

export interface TestServer {
  readonly server: Multiplexer;
  readonly options: ServerOptions;
  /** Sends a request in the session of this test client, and returns all messages of the answer, parsed. */
  request(method: string, params?: unknown, id?: unknown): Promise<(Received & Record<string, unknown>)[]>;
  /** Sends a request and returns the only message. */
  ask(method: string, params?: unknown): Promise<Received & Record<string, unknown>>;
  /** Sends a request and returns the answer unread. */
  open(method: string, params?: unknown, id?: unknown): Promise<McpAnswer>;
  /** Sends the text of a request to `tools/call`. */
  openText(text: string): Promise<McpAnswer>;
  notify(message: unknown): Promise<void>;
  listen(): Promise<McpAnswer>;
}

export interface TestServerOptions extends Partial<Omit<ServerOptions, "naming">> {
  readonly mode?: McpPrefixMode;
  readonly version?: string;
  readonly session?: Session;
  /** By default one that nothing can be read from: targets do not. */
  readonly exchange?: RoutedExchange;
}

const EXCHANGE = {} as RoutedExchange;
const TEST_SEAL: Seal = new Seal([randomBytes(32)]);

export function testServer(targets: readonly Target[], options: TestServerOptions = {}): TestServer {
  const { mode = McpPrefixMode.UNSPECIFIED, version = "2025-11-25", session = testSession() } = options;
  const { mode: _mode, version: _version, session: _session, exchange = EXCHANGE, ...others } = options;
  const serverOptions: ServerOptions = {
    backend: "ns/tools",
    naming: new Naming(mode, targets),
    failOpen: false,
    stateless: false,
    seal: TEST_SEAL,
    streams: new OpenStreams(),
    authorize: () => undefined,
    guard: undefined,
    ...others,
  };
  const server = createVirtualServer(serverOptions);
  const client = { version, isModern: version >= "2026-07-28", session, exchange };
  const openMessage = (value: unknown): Promise<McpAnswer> => {
    const message = messageOf(value);
    const method = findMethod(message.method ?? "");
    if (method === undefined) throw new Error(`unknown method ${message.method}`);
    return server.request({ ...client, method, message });
  };
  const open: TestServer["open"] = (method, params, id = 1) => openMessage({ id, method, params });
  const request: TestServer["request"] = async (method, params, id) => readAll(await open(method, params, id));
  return {
    server,
    options: serverOptions,
    open,
    request,
    openText: openMessage,
    async ask(method, params) {
      const [only, ...others] = await request(method, params);
      if (only === undefined || others.length > 0) throw new Error("not one message");
      return only;
    },
    notify: (message) => server.notify({ ...client, message: messageOf(message) } satisfies ClientMessage),
    listen: () => server.listen(session, EXCHANGE),
  };
}

export async function readAll({ messages }: McpAnswer): Promise<(Received & Record<string, unknown>)[]> {
  const all: (Received & Record<string, unknown>)[] = [];
  for await (const message of messages) all.push(parse(message));
  return all;
}

/** Makes a session that no id stands for; targets are entered with the first message to them. */
export function testSession(): Session {
  const targets = new Map<string, TargetSession>();
  const session = {
    id: "session",
    client: { version: "2025-11-25", capabilities: "{}", name: "test", clientVersion: "1" },
    target(name: string): TargetSession {
      const own = targets.get(name) ?? {
        entered: false,
        isLost: false,
        id: undefined,
        endpoint: undefined,
        entering: undefined,
      };
      targets.set(name, own);
      return own;
    },
    logLevel: undefined,
    subscriptions: new Map(),
    refresh: () => false,
    publish: () => true,
  };
  return session;
}

/** Reads messages of an answer one by one. */
export function openReader({ messages }: McpAnswer): () => Promise<(Received & Record<string, unknown>) | undefined> {
  async function* all() {
    yield* messages;
  }
  const iterator = all();
  return async () => {
    const { value } = await iterator.next();
    return value === undefined ? undefined : parse(value);
  };
}
