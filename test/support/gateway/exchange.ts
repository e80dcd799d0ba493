/** An exchange without sockets, for unit tests of policies: a plain object whose parts a test sets and reads. */
import { HeaderView } from "../../../src/cel/header-view.ts";
import { compileExpression, failingExpression } from "../../../src/cel/compile/compile-expression.ts";
import { environmentOf } from "../../../src/cel/environments/phases.ts";
import { CelError } from "../../../src/cel/errors.ts";
import { HeaderList } from "../../../src/lib/header-list.ts";
import type { Logger } from "../../../src/lib/log.ts";
import { SharedTable } from "../../../src/lib/shared-table.ts";
import { verifyPassword } from "../../../src/lib/password/verify.ts";
import type { Body, BodySink, BodyStream } from "../../../src/proxy/exchange/body.ts";
import type { RoutedExchange, Reply } from "../../../src/proxy/exchange/exchange.ts";
import type { PolicyDeps } from "../../../src/proxy/policies/policy.ts";

export interface ExchangeParts {
  readonly method?: string;
  readonly target?: string;
  readonly host?: string;
  readonly headers?: readonly string[];
  readonly proxyAuthorization?: readonly string[];
  readonly body?: Body;
  readonly startedAtMs?: number;
  readonly roots?: Readonly<Record<string, unknown>>;
}

export interface TestExchange extends RoutedExchange {
  readonly roots: Map<string, unknown>;
  readonly logFields: Map<string, string | number | boolean>;
}

export function makeExchange(parts: ExchangeParts = {}): TestExchange {
  const roots = new Map<string, unknown>(Object.entries(parts.roots ?? {}));
  const logFields = new Map<string, string | number | boolean>();
  const exchange: TestExchange = {
    roots,
    logFields,
    startedAtMs: parts.startedAtMs ?? 0,
    startedAt: new Date(0),
    listener: { bind: "8080/default/gateway", gateway: "gateway", namespace: "default", name: "http" },
    route: undefined,
    backend: undefined,
    source: { address: "10.1.2.3", port: 4444 },
    calledAtMs: undefined,
    answeredAtMs: undefined,
    method: parts.method ?? "GET",
    target: parts.target ?? "/",
    host: parts.host ?? "example.test",
    scheme: "http",
    originalScheme: "http",
    version: "HTTP/1.1",
    requestHeaders: new HeaderList([...(parts.headers ?? [])]),
    originalTarget: parts.target ?? "/",
    originalHost: parts.host ?? "example.test",
    proxyAuthorization: parts.proxyAuthorization,
    cdnLoop: undefined,
    requestLimitBytes: 1024,
    responseLimitBytes: 1024,
    connect: false,
    outboundKind: "Primary",
    trace: undefined,
    requestBody: parts.body ?? null,
    deadlineAtMs: undefined,
    backendTimeoutMs: undefined,
    endpoint: undefined,
    hostChoice: undefined,
    retry: undefined,
    tried: undefined,
    attempt: undefined,
    replyTrailers: undefined,
    matchedPrefix: undefined,
    queuedHeaders: new HeaderList(),
    tokenGates: [],
    async bufferRequestBody(limitBytes) {
      const { requestBody } = exchange;
      const whole = requestBody === null || Buffer.isBuffer(requestBody) ? requestBody : await readAll(requestBody);
      if (whole !== null && whole.length > limitBytes) return undefined;
      exchange.requestBody = whole;
      return whole ?? Buffer.alloc(0);
    },
    root(name) {
      return name === "request" ? requestRoot(exchange) : roots.get(name);
    },
    setRoot(name, value) {
      roots.set(name, value);
    },
    addLogField(name, value) {
      logFields.set(name, value);
    },
    addSecretParameter: () => undefined,
    onAbort: () => undefined,
    onDone: () => undefined,
  };
  return exchange;
}

function requestRoot(exchange: RoutedExchange): Record<string, unknown> {
  return {
    method: exchange.method,
    path: exchange.target.split("?", 1)[0],
    pathAndQuery: exchange.target,
    host: exchange.host,
    scheme: exchange.scheme,
    headers: new HeaderView(exchange.requestHeaders),
    body: Buffer.isBuffer(exchange.requestBody) ? exchange.requestBody : null,
  };
}

/** Returns dependencies whose expressions compile as in the data plane: an invalid one always fails at evaluation. */
export function makeDeps(overrides: Partial<PolicyDeps> = {}): PolicyDeps {
  const kept = new Map<string, unknown>();
  return {
    log: silentLogger,
    nowMs: () => 0,
    owner: "policy/default/test",
    callout: () => {
      throw new Error("this policy asks no service");
    },
    passwords: {
      check: (password, hash) => Promise.resolve(verifyPassword(Buffer.from(password), hash)),
    },
    expression(source, place) {
      try {
        return compileExpression(source, environmentOf(place));
      } catch (error) {
        if (error instanceof CelError) return failingExpression(source, error.message);
        throw error;
      }
    },
    slots: SharedTable.alone(16_384),
    keep<T>(key: string, create: () => T): T {
      if (!kept.has(key)) kept.set(key, create());
      return kept.get(key) as T; // created by `create` for the same key
    },
    ...overrides,
  };
}

export function makeReply(parts: Partial<Reply> = {}): Reply {
  return { status: 200, headers: new HeaderList(), body: null, upstream: true, ...parts };
}

/** A body that pushes the given chunks as the reader demands them, and records whether it was destroyed. */
export class ChunkStream implements BodyStream {
  readonly #chunks: Buffer[];
  readonly #trailers: readonly string[];
  #sink: BodySink | undefined;
  destroyed = false;

  constructor(chunks: readonly string[], trailers: readonly string[] = []) {
    this.#chunks = chunks.map((chunk) => Buffer.from(chunk));
    this.#trailers = trailers;
  }

  read(sink: BodySink): void {
    this.#sink = sink;
    this.#flow();
  }

  resume(): void {
    this.#flow();
  }

  destroy(): void {
    this.destroyed = true;
    this.#sink = undefined;
  }

  #flow(): void {
    while (this.#sink !== undefined) {
      const chunk = this.#chunks.shift();
      if (chunk === undefined) {
        const sink = this.#sink;
        this.#sink = undefined;
        sink.end(this.#trailers);
      } else if (!this.#sink.data(chunk)) return;
    }
  }
}

/** Reads a body of any kind to its end. */
export function readAll(body: Body): Promise<Buffer> {
  if (body === null) return Promise.resolve(Buffer.alloc(0));
  if (Buffer.isBuffer(body)) return Promise.resolve(body);
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    body.read({
      data: (chunk) => chunks.push(chunk) > 0,
      end: () => resolve(Buffer.concat(chunks)),
      error: reject,
    });
  });
}

const silentLogger: Logger = {
  error: () => undefined,
  warn: () => undefined,
  info: () => undefined,
  debug: () => undefined,
  trace: () => undefined,
  child: () => silentLogger,
};
