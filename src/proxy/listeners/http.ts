/**
 * HTTP/1.1 on the connections of a Bind: node:http parses (strictly, no lenient option), we decide and answer. In: clients.
 * Out: exchanges for the pipeline, each finished exactly once. Limits for hostile clients are here.
 */
import { randomUUID } from "node:crypto";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { messageOf } from "../../lib/errors.ts";
import { HeaderList } from "../../lib/header-list.ts";
import type { Logger } from "../../lib/log.ts";
import { ProxyError } from "../errors.ts";
import { errorReply, printError } from "../pipeline/error-reply.ts";
import type { Outcome, Reply } from "../pipeline/exchange.ts";
import { HttpExchange, type DeadlineWatcher } from "../pipeline/http-exchange.ts";
import { Run, type Stage } from "../pipeline/run.ts";
import { arrivalOf, readHead, type Peer } from "./arrival.ts";
import type { Engine } from "./bind.ts";
import { Connections, refuseSocket, type InFlight } from "./connections.ts";
import { IncomingBody } from "./incoming-body.ts";
import { ReplyWriter } from "./reply-writer.ts";

export interface Http1Options {
  readonly bind: string;
  readonly log: Logger;
  /** Where every request enters; asked anew for each. */
  readonly stage: Stage;
  readonly onFinished: (exchange: HttpExchange, outcome: Outcome) => void;
}

const MAX_HEADER_BYTES = 65_536;
const HEAD_TIMEOUT_MS = 60_000;
const IDLE_TIMEOUT_MS = 600_000;
/** A body left unread after our answer: up to here it is cheaper to swallow it than to open a connection anew. */
const SWALLOW_BYTES = 65_536;

export function createHttp1(options: Http1Options): Engine {
  const connections = new Connections();
  const server = createServer({
    maxHeaderSize: MAX_HEADER_BYTES,
    headersTimeout: HEAD_TIMEOUT_MS,
    requestTimeout: 0,
    keepAliveTimeout: IDLE_TIMEOUT_MS,
    connectionsCheckingInterval: 5_000,
    requireHostHeader: false,
    insecureHTTPParser: false,
    optimizeEmptyRequests: true,
  });
  // The limit is on bytes and, in arrival.ts, on fields: node would silently drop those beyond its own.
  server.maxHeadersCount = 0;
  const front = new Front(options, connections);
  server.on("request", (request, response) => front.serve(request, response, false));
  server.on("checkContinue", (request, response) => front.serve(request, response, true));
  server.on("clientError", (error: NodeJS.ErrnoException, socket: Socket) => connections.onClientError(error, socket));
  server.on("connect", (_request, socket: Socket) =>
    refuseSocket(socket, printError(new ProxyError("method_not_allowed"), false)),
  );
  // The server never listens by itself, but its time limits only run once it believes so.
  server.emit("listening");
  return {
    take(socket) {
      connections.add(socket);
      server.emit("connection", socket);
    },
    drain() {
      front.draining = true;
      // Ends idle connections too. What it says about not listening is true and no error.
      server.close();
    },
  };
}

class Front {
  draining = false;
  readonly #options: Http1Options;
  readonly #connections: Connections;

  constructor(options: Http1Options, connections: Connections) {
    this.#options = options;
    this.#connections = connections;
  }

  serve(request: IncomingMessage, response: ServerResponse, waits: boolean): void {
    const peer = this.#connections.peerOf(request.socket);
    let visit: Visit;
    let entry: Stage | undefined = this.#options.stage;
    let refusal: unknown;
    try {
      const head = readHead(request, peer, this.#options.bind);
      const body = head.hasBody ? new IncomingBody(request, waits ? response : undefined) : null;
      visit = new Visit(this, new HttpExchange(arrivalOf(head, body)), { request, response, body });
    } catch (error) {
      visit = new Visit(this, invalidExchange(request, peer, this.#options.bind), { request, response, body: null });
      entry = undefined;
      refusal = error;
    }
    this.#connections.enter(request.socket, visit);
    if (entry === undefined) visit.send(errorReply(visit.exchange, refusal), true);
    else visit.run(entry);
  }

  finished(visit: Visit, outcome: Outcome): void {
    this.#connections.leave(visit.request.socket, visit);
    visit.exchange.finish(outcome);
    this.#options.onFinished(visit.exchange, outcome);
    // An answer that began before the drain promised to keep the connection.
    if (this.draining && this.#connections.isIdle(visit.request.socket)) visit.request.socket.end();
  }

  get log(): Logger {
    return this.#options.log;
  }
}

/** One request and its answer on one connection. */
export class Visit implements InFlight, DeadlineWatcher {
  readonly exchange: HttpExchange;
  readonly request: IncomingMessage;
  readonly #front: Front;
  readonly #response: ServerResponse;
  readonly #body: IncomingBody | null;
  readonly #writer: ReplyWriter;
  #status = 0;
  #over = false;

  constructor(
    front: Front,
    exchange: HttpExchange,
    parts: { request: IncomingMessage; response: ServerResponse; body: IncomingBody | null },
  ) {
    this.#front = front;
    this.exchange = exchange;
    this.request = parts.request;
    this.#response = parts.response;
    this.#body = parts.body;
    this.#writer = new ReplyWriter(parts.response, exchange);
    exchange.deadlineWatcher = this;
    parts.response.on("finish", () => this.#end(false));
  }

  run(stage: Stage): void {
    const reply = Run.start(this.exchange, stage);
    if (reply instanceof Promise) void reply.then((late) => this.send(late, false));
    else this.send(reply, false);
  }

  send(reply: Reply, close: boolean): void {
    if (this.#over || this.#status !== 0) {
      if (reply.body !== null && !Buffer.isBuffer(reply.body)) reply.body.destroy();
      return;
    }
    this.exchange.answeredByUpstream = reply.upstream;
    this.#status = reply.status;
    try {
      this.#writer.write(reply, close || this.#mustClose());
    } catch (error) {
      this.#front.log.error("answer cannot be written", { error: messageOf(error) });
      if (reply.body !== null && !Buffer.isBuffer(reply.body)) reply.body.destroy();
      if (this.#response.headersSent) this.#writer.cut();
      else this.#sendError(new ProxyError("internal", { cause: error }));
    }
  }

  /** The connection is gone. Nothing to do when the answer went out in full. */
  onConnectionLost(): void {
    this.#end(true);
  }

  #sendError(error: ProxyError): void {
    const reply = errorReply(this.exchange, error);
    this.#status = reply.status;
    this.#writer.write(reply, true);
  }

  onDeadline(): void {
    // What was aborted answers in this turn, with the response policies; only what hangs elsewhere is cut short here.
    setImmediate(() => {
      if (this.#over) return;
      if (this.#status === 0) this.#sendError(new ProxyError("request_timeout"));
      else if (!this.#response.writableEnded) this.#writer.cut();
    });
  }

  #mustClose(): boolean {
    if (this.#front.draining) return true;
    if (this.#body === null || this.request.complete) return false;
    const { contentLength } = this.exchange;
    return contentLength === undefined || contentLength > SWALLOW_BYTES;
  }

  #end(lost: boolean): void {
    if (this.#over) return;
    this.#over = true;
    const { exchange } = this;
    const timedOut = exchange.aborted;
    if (lost) {
      this.#writer.abandon();
      exchange.abort(new Error("client closed the connection"));
    }
    const clientGone = lost && !timedOut && !this.#response.writableEnded && !this.#writer.broken;
    this.#front.finished(this, {
      status: this.#status === 0 ? 499 : this.#status,
      requestBytes: this.#body?.bytes ?? 0,
      responseBytes: this.#writer.bytes,
      durationMs: performance.now() - exchange.startedAtMs,
      error: exchange.error?.code ?? (this.#writer.broken ? "upstream_broken" : undefined),
      clientGone,
    });
  }
}

/** What can be said about a request whose head was refused: nothing of it is kept but the method. */
function invalidExchange({ method, httpVersion }: IncomingMessage, source: Peer, bind: string): HttpExchange {
  return new HttpExchange({
    method: method ?? "",
    target: "/",
    host: "",
    scheme: source.serverName === undefined ? "http" : "https",
    version: `HTTP/${httpVersion}`,
    headers: new HeaderList(),
    body: null,
    contentLength: undefined,
    requestId: randomUUID(),
    source,
    serverName: source.serverName,
    bind,
    proxyAuthorization: undefined,
  });
}
