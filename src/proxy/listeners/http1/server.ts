/**
 * HTTP/1.1 on the connections of a Bind: node:http parses (strictly, no lenient option), we decide and answer. In: clients.
 * Out: exchanges for the pipeline, each finished exactly once. Limits for hostile clients are here.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { Logger } from "../../../lib/log.ts";
import { ProxyError } from "../../errors.ts";
import type { Outcome } from "../../pipeline/exchange.ts";
import { isOffer, type RequestHead } from "../received-request.ts";
import type { ProtocolServer, ProtocolServerOptions, ServedConnection } from "../protocol-server.ts";
import type { Frontend, Http1Settings } from "../frontend.ts";
import { Http1UpgradeEncoder } from "./upgrade.ts";
import { Http1ResponseEncoder } from "./response-encoder.ts";
import { IncomingBody, type BodySource } from "../incoming-body.ts";
import { peerOf, type Peer } from "../peer.ts";
import { hangUp, refusalOf, refuseSocket } from "./refuse-socket.ts";
import { startRequest, type Host, type ActiveRequest } from "../active-request.ts";

const MAX_HEADER_BYTES = 65_536;
const CHECK_INTERVAL_MS = 1_000;
const RETIRED_IDLE_MS = 5_000;

export function createHttp1Server(options: ProtocolServerOptions): ProtocolServer {
  const state: State = { draining: false, connections: new WeakMap() };
  const servers = new Set<ServerGeneration>();
  let newest: ServerGeneration | undefined;
  return {
    accept(socket) {
      const frontend = options.frontend();
      if (newest?.frontend !== frontend) {
        newest?.retire();
        newest = new ServerGeneration(frontend, state, servers);
      }
      const connection = new Connection(socket, options, frontend, state);
      newest.take(socket, connection);
      return connection;
    },
    announce() {
      state.draining = true;
    },
    drain() {
      state.draining = true;
      for (const server of servers) server.close();
    },
  };
}

interface State {
  draining: boolean;
  readonly connections: WeakMap<Socket, Connection>;
}

/** node:http knows limits of time for a server and not for a connection: each set of settings has a server of its own. */
class ServerGeneration {
  readonly frontend: Frontend;
  readonly #server: Server;
  readonly #state: State;
  readonly #all: Set<ServerGeneration>;
  #open = 0;
  #isRetired = false;

  constructor(frontend: Frontend, state: State, all: Set<ServerGeneration>) {
    this.frontend = frontend;
    this.#state = state;
    this.#server = createServerFor(frontend, state.connections);
    this.#all = all;
    all.add(this);
  }

  take(socket: Socket, connection: Connection): void {
    this.#open++;
    socket.on("close", () => {
      this.#open--;
      this.#leave();
    });
    this.#state.connections.set(socket, connection);
    this.#server.emit("connection", socket);
  }

  /** No new connection comes; those that are open keep what they began with. */
  retire(): void {
    this.#isRetired = true;
    this.#leave();
  }

  /** Ends idle connections too. What it says about not listening is true and no error. */
  close(): void {
    this.#server.close();
  }

  #leave(): void {
    if (!this.#isRetired || this.#open > 0) return;
    this.#server.close();
    this.#all.delete(this);
  }
}

function createServerFor({ http1 }: Frontend, connections: State["connections"]): Server {
  const server = createServer({
    maxHeaderSize: MAX_HEADER_BYTES,
    requestTimeout: 0,
    headersTimeout: http1.headTimeoutMs,
    keepAliveTimeout: http1.idleTimeoutMs,
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
  // An expectation that nobody knows binds nobody (RFC 9110 10.1.1); node would answer by itself.
  server.on("checkExpectation", (request, response) =>
    connections.get(request.socket)?.serve(request, response, false),
  );
  server.on("upgrade", (request, socket: Socket, first) => {
    if (isIgnored(request)) readAgain(server, request, socket, first);
    else connections.get(socket)?.upgrade(request, socket, first);
  });
  server.on("clientError", (error: NodeJS.ErrnoException, socket: Socket) => connections.get(socket)?.onError(error));
  server.on("connect", (request, socket: Socket, first) => connections.get(socket)?.connect(request, socket, first));
  // The server never listens by itself, but its time limits only run once it believes so.
  server.emit("listening");
  return server;
}

/** A request whose turn comes when the answers before it are out. */
interface Pending {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  /** The client wants to hear "100 Continue" before it sends the body. */
  readonly waits: boolean;
}

/** Beyond either the connection ends: what a client sends ahead is held in memory. */
const MAX_PENDING = 100;
const MAX_PENDING_BYTES = 65_536;

/** Of fields: behind the beginning of a body they are trailers. */
const TRAILER_FAULTS: ReadonlySet<string> = new Set([
  "HPE_INVALID_CONTENT_LENGTH",
  "HPE_UNEXPECTED_CONTENT_LENGTH",
  "HPE_INVALID_TRANSFER_ENCODING",
  "HPE_INVALID_HEADER_TOKEN",
  "HPE_HEADER_OVERFLOW",
]);

class Connection implements Host, ServedConnection {
  readonly #socket: Socket;
  readonly #peer: Peer;
  readonly #options: ProtocolServerOptions;
  readonly #state: { readonly draining: boolean };
  readonly #settings: Http1Settings;
  readonly #canConnect: boolean;
  /** The answer that is under way is the last one. */
  #isLast = false;
  #activeRequest: ActiveRequest | undefined;
  /** Of the last request that came: not yet complete, what is malformed is its body. */
  #newest: IncomingMessage | undefined;
  /** Only when a client pipelines. */
  #pending: Pending[] = [];
  #pendingBytes = 0;
  /** Said when the answers to what came before the malformed bytes are out. */
  #refusal: ProxyError | undefined;

  constructor(
    socket: Socket,
    options: ProtocolServerOptions,
    frontend: Frontend,
    state: { readonly draining: boolean },
  ) {
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
      this.#pending = [];
      this.#activeRequest?.onConnectionLost();
    });
  }

  get log(): Logger {
    return this.#options.log;
  }

  get draining(): boolean {
    return this.#isLast || this.#state.draining;
  }

  /** An idle client may be about to ask: it gets its answer, which says that it was the last, if it asks soon. */
  retire(): void {
    this.#isLast = true;
    this.#socket.once("close", this.#options.clock.after(RETIRED_IDLE_MS, this.#growOld.bind(this)));
  }

  /** Ends with the answer that is under way, which says so; at once without one. */
  #growOld(): void {
    this.#isLast = true;
    if (this.#activeRequest === undefined) hangUp(this.#socket);
  }

  /** What has a body or stands behind another request is answered where it stands, with a refusal. */
  mayUpgrade(request: IncomingMessage): boolean {
    const { "content-length": length = "0", "transfer-encoding": coding } = request.headers;
    const busy = this.#activeRequest !== undefined;
    const ignored = isIgnored(request);
    // Once it has seen an upgrade, node loses what else is in the packet; a refusal ends the connection anyway.
    if (busy && ignored) this.#isLast = true;
    return !busy && (ignored || (length === "0" && coding === undefined));
  }

  connect(request: IncomingMessage, socket: Socket, first: Buffer): void {
    // Nothing can be said in between, and the parser has let go of the connection.
    if (this.#activeRequest !== undefined) socket.destroy();
    else this.upgrade(request, socket, first);
  }

  upgrade(request: IncomingMessage, socket: Socket, first: Buffer): void {
    const encoder = new Http1UpgradeEncoder(request, socket, first);
    const { keepsCase } = this.#settings;
    const makeBody = (): IncomingBody => new IncomingBody(new Http1BodySource(request, keepsCase, undefined));
    startRequest({
      host: this,
      head: this.#head(request, true),
      peer: this.#peer,
      makeBody,
      encoder,
      options: this.#options,
    });
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
      replica: this.#options.replica,
    };
  }

  /** One after the other: a client that sends ahead gets no more of us than one that waits. */
  serve(request: IncomingMessage, response: ServerResponse, waits: boolean): void {
    this.#newest = request;
    if (this.#activeRequest === undefined) this.#receive(request, response, waits);
    else {
      this.#pendingBytes += request.rawHeaders.reduce((sum, text) => sum + text.length, 0);
      if (this.#pending.length < MAX_PENDING && this.#pendingBytes <= MAX_PENDING_BYTES)
        this.#pending.push({ request, response, waits });
      // Reading no further would also mean not to notice when the client leaves.
      else this.#socket.destroy();
    }
  }

  #receive(request: IncomingMessage, response: ServerResponse, waits: boolean): void {
    const head = this.#head(request, false);
    const { keepsCase } = this.#settings;
    const waiting = waits ? response : undefined;
    const makeBody = (): IncomingBody => new IncomingBody(new Http1BodySource(request, keepsCase, waiting));
    startRequest({
      host: this,
      head,
      peer: this.#peer,
      makeBody,
      encoder: new Http1ResponseEncoder(response),
      options: this.#options,
    });
  }

  entered(activeRequest: ActiveRequest): void {
    this.#activeRequest = activeRequest;
  }

  finished(activeRequest: ActiveRequest, outcome: Outcome): void {
    this.#activeRequest = undefined;
    activeRequest.exchange.finish(outcome);
    this.#options.onFinished(activeRequest.exchange, outcome);
    const socket = this.#socket;
    // The answer said that it is the last, or the client is gone: what it sent ahead is not for us any more.
    if (!socket.writable) this.#pending = [];
    // An answer that began before the drain promised to keep the connection.
    else if (this.draining) hangUp(socket);
    else if (this.#pending.length > 0) this.#next();
    else if (this.#refusal !== undefined) refuseSocket(socket, this.#refusal);
    // An idle connection keeps nothing of what it has carried.
    if (this.#pending.length === 0 && this.#activeRequest === undefined) this.#newest = undefined;
  }

  #next(): void {
    const { request, response, waits } = this.#pending.shift() as Pending;
    if (this.#pending.length === 0) this.#pendingBytes = 0;
    this.#receive(request, response, waits);
  }

  /** Bytes that are no HTTP. What is answered before them is whole; a body that breaks off takes its answer with it. */
  onError(error: NodeJS.ErrnoException): void {
    const socket = this.#socket;
    const inBody = this.#activeRequest !== undefined && this.#newest?.complete === false;
    if (inBody && socket.writable && TRAILER_FAULTS.has(error.code ?? "")) {
      this.#isLast = true;
      this.#activeRequest?.refuse(new ProxyError("request_invalid", { detail: "malformed or forbidden trailer" }));
    } else if (inBody || !socket.writable || error.code === "ECONNRESET") socket.destroy();
    // Not malformed: the client itself has said that nothing would come.
    else if (error.code === "HPE_CLOSED_CONNECTION") this.#growOld();
    else if (this.#activeRequest === undefined) refuseSocket(socket, refusalOf(error));
    else this.#refusal ??= refusalOf(error);
  }
}

/** An offer of HTTP/2, and what HTTP/1.0 knows nothing of, are as if they were not there. */
function isIgnored({ headers, httpVersion }: IncomingMessage): boolean {
  return httpVersion !== "1.1" || isOffer(headers.upgrade ?? "");
}

/** The parser has stopped behind the head and does not go on: a new one gets the same request without the offer. */
function readAgain(
  server: Server,
  { method, url, httpVersion, rawHeaders }: IncomingMessage,
  socket: Socket,
  first: Buffer,
): void {
  let head = `${method} ${url} HTTP/${httpVersion}\r\n`;
  for (let at = 0; at < rawHeaders.length; at += 2)
    if (rawHeaders[at]?.toLowerCase() !== "upgrade") head += `${rawHeaders[at]}: ${rawHeaders[at + 1]}\r\n`;
  socket.unshift(Buffer.concat([Buffer.from(`${head}\r\n`, "latin1"), first]));
  server.emit("connection", socket);
  socket.resume();
}

class Http1BodySource implements BodySource {
  readonly stream: IncomingMessage;
  readonly keepsCase: boolean;
  /** Present while the client waits for "100 Continue". */
  #waiting: ServerResponse | undefined;

  constructor(request: IncomingMessage, keepsCase: boolean, waiting: ServerResponse | undefined) {
    this.stream = request;
    this.keepsCase = keepsCase;
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
