/**
 * HTTP/1.1 on the connections of a Bind: node:http parses (strictly, no lenient option), we decide and answer. In: clients.
 * Out: exchanges for the pipeline, each finished exactly once. Limits for hostile clients are here.
 */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { Logger } from "../../lib/log.ts";
import type { Outcome } from "../pipeline/exchange.ts";
import { isOffer, type RequestHead } from "./arrival.ts";
import type { Engine, EngineOptions } from "./engine.ts";
import type { Frontend, Http1Settings } from "./frontend.ts";
import { Http1UpgradeWire } from "./http1-upgrade.ts";
import { Http1Wire } from "./http1-wire.ts";
import { IncomingBody, type BodySource } from "./incoming-body.ts";
import { peerOf, type Peer } from "./peer.ts";
import { refusalOf, refuseSocket } from "./refuse-socket.ts";
import { receive, type Host, type Visit } from "./visit.ts";

const MAX_HEADER_BYTES = 65_536;
const CHECK_INTERVAL_MS = 1_000;

export function createHttp1(options: EngineOptions): Engine {
  const state = { draining: false };
  const connections = new WeakMap<Socket, Connection>();
  const server = createServer({
    maxHeaderSize: MAX_HEADER_BYTES,
    requestTimeout: 0,
    connectionsCheckingInterval: CHECK_INTERVAL_MS,
    requireHostHeader: false,
    insecureHTTPParser: false,
    optimizeEmptyRequests: true,
    shouldUpgradeCallback: (request) => connections.get(request.socket)?.mayUpgrade(request) === true,
  });
  // The limit is on bytes and, in arrival.ts, on fields: node would silently drop those beyond its own.
  server.maxHeadersCount = 0;
  server.on("request", (request, response) => connections.get(request.socket)?.serve(request, response, false));
  server.on("checkContinue", (request, response) => connections.get(request.socket)?.serve(request, response, true));
  server.on("upgrade", (request, socket: Socket, first) => connections.get(socket)?.upgrade(request, socket, first));
  server.on("clientError", (error: NodeJS.ErrnoException, socket: Socket) => connections.get(socket)?.onError(error));
  server.on("connect", (request, socket: Socket, first) => connections.get(socket)?.connect(request, socket, first));
  // The server never listens by itself, but its time limits only run once it believes so.
  server.emit("listening");
  return {
    take(socket) {
      const frontend = options.frontend();
      // The only settings that node:http knows for a server and not for a connection: those that are open follow a change.
      server.headersTimeout = frontend.http1.headTimeoutMs;
      server.keepAliveTimeout = frontend.http1.idleTimeoutMs;
      connections.set(socket, new Connection(socket, options, frontend, state));
      server.emit("connection", socket);
    },
    drain() {
      state.draining = true;
      // Ends idle connections too. What it says about not listening is true and no error.
      server.close();
    },
  };
}

class Connection implements Host {
  readonly #socket: Socket;
  readonly #peer: Peer;
  readonly #options: EngineOptions;
  readonly #state: { readonly draining: boolean };
  readonly #settings: Http1Settings;
  readonly #canConnect: boolean;
  #isOld = false;
  /** More than one only when a client pipelines. */
  readonly #visits = new Set<Visit>();

  constructor(socket: Socket, options: EngineOptions, frontend: Frontend, state: { readonly draining: boolean }) {
    this.#socket = socket;
    this.#peer = peerOf(socket, options, frontend);
    this.#settings = frontend.http1;
    this.#canConnect = frontend.connect === "route";
    this.#options = options;
    this.#state = state;
    const { maxConnectionMs } = frontend;
    const timer = maxConnectionMs === undefined ? undefined : setTimeout(() => this.#growOld(), maxConnectionMs);
    socket.on("close", () => {
      clearTimeout(timer);
      for (const visit of this.#visits) visit.onConnectionLost();
      this.#visits.clear();
    });
  }

  get log(): Logger {
    return this.#options.log;
  }

  get draining(): boolean {
    return this.#isOld || this.#state.draining;
  }

  /** Ends with the answer that is under way, which says so; at once without one. */
  #growOld(): void {
    this.#isOld = true;
    if (this.#visits.size === 0) this.#socket.end();
  }

  /** What has a body or stands behind another request is answered where it stands, with a refusal. */
  mayUpgrade({ headers, httpVersion }: IncomingMessage): boolean {
    const { upgrade, "content-length": length = "0", "transfer-encoding": coding } = headers;
    if (upgrade === undefined || isOffer(upgrade) || httpVersion !== "1.1") return false;
    return length === "0" && coding === undefined && this.#visits.size === 0;
  }

  connect(request: IncomingMessage, socket: Socket, first: Buffer): void {
    // Nothing can be said in between, and the parser has let go of the connection.
    if (this.#visits.size > 0) socket.destroy();
    else this.upgrade(request, socket, first);
  }

  upgrade(request: IncomingMessage, socket: Socket, first: Buffer): void {
    const wire = new Http1UpgradeWire(request, socket, first);
    const makeBody = (): IncomingBody => new IncomingBody(new Http1BodySource(request, undefined));
    receive({ host: this, head: this.#head(request, true), peer: this.#peer, makeBody, wire, options: this.#options });
  }

  #head(request: IncomingMessage, canUpgrade: boolean): RequestHead {
    return {
      method: request.method ?? "",
      target: request.url ?? "",
      authority: undefined,
      version: `HTTP/${request.httpVersion}`,
      fields: request.rawHeaders,
      isBodyless: undefined,
      canUpgrade,
      canConnect: this.#canConnect,
      maxFields: this.#settings.maxFields,
      keepsCase: this.#settings.keepsCase,
      maxFieldBytes: undefined,
    };
  }

  serve(request: IncomingMessage, response: ServerResponse, waits: boolean): void {
    const head = this.#head(request, false);
    const makeBody = (): IncomingBody => new IncomingBody(new Http1BodySource(request, waits ? response : undefined));
    receive({ host: this, head, peer: this.#peer, makeBody, wire: new Http1Wire(response), options: this.#options });
  }

  entered(visit: Visit): void {
    this.#visits.add(visit);
  }

  finished(visit: Visit, outcome: Outcome): void {
    this.#visits.delete(visit);
    visit.exchange.finish(outcome);
    this.#options.onFinished(visit.exchange, outcome);
    // An answer that began before the drain promised to keep the connection.
    if (this.draining && this.#visits.size === 0) this.#socket.end();
  }

  /** Bytes that are no HTTP. While an answer is under way nothing can be said in between. */
  onError(error: NodeJS.ErrnoException): void {
    const socket = this.#socket;
    if (this.#visits.size > 0 || !socket.writable || error.code === "ECONNRESET") socket.destroy();
    else refuseSocket(socket, refusalOf(error));
  }
}

class Http1BodySource implements BodySource {
  readonly stream: IncomingMessage;
  /** Present while the client waits for "100 Continue". */
  #waiting: ServerResponse | undefined;

  constructor(request: IncomingMessage, waiting: ServerResponse | undefined) {
    this.stream = request;
    this.#waiting = waiting;
  }

  get isComplete(): boolean {
    return this.stream.complete;
  }

  get trailers(): readonly string[] {
    return this.stream.rawTrailers;
  }

  wanted(): void {
    this.#waiting?.writeContinue();
    this.#waiting = undefined;
  }
}
