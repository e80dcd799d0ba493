/**
 * The HTTP/1.1 protocol server of a Bind (RFC 9112). The acceptor hands it plain or TLS sockets; node:http parses them
 * strictly, with no lenient option, and each request becomes an ActiveRequest that finishes exactly once.
 *
 *   ProtocolServer ─► ServerGeneration (one node:http server per set of settings) ─► Connection ─► ActiveRequest
 *
 * A Connection serves one request at a time. Pipelined requests (RFC 9112 §9.3.2) wait in `#pending`, with bounds on
 * their number and bytes, so that a client that sends ahead cannot take more of the gateway than one that waits.
 *
 *   idle ──request──► active ──finished──► the next pending request, else idle
 *    │                   └─ finished while draining, retired or after malformed bytes ─► half-close, then closed
 *    └─ malformed bytes: error response, then half-close
 *
 * An upgrade or CONNECT leaves this state machine: node:http detaches its parser, and Http1UpgradeEncoder owns the
 * socket. The limits against hostile clients are here: header bytes, pipelining, and the time for a head (slowloris).
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { Logger } from "../../../lib/log.ts";
import { ProxyError } from "../../exchange/errors.ts";
import type { Outcome } from "../../exchange/exchange.ts";
import type { RequestHead } from "../received-request.ts";
import type { ProtocolServer, ProtocolServerOptions, ServedConnection } from "../protocol-server.ts";
import type { Frontend, Http1Settings } from "../frontend.ts";
import { Http1UpgradeEncoder } from "./upgrade.ts";
import { Http1ResponseEncoder } from "./response-encoder.ts";
import { Http1BodySource } from "./body-source.ts";
import { isIgnoredUpgrade, parseWithoutUpgrade } from "./ignored-upgrade.ts";
import { IncomingBody } from "../incoming-body.ts";
import { peerOf, type Peer } from "../peer.ts";
import { proxyErrorOf, refuseSocket } from "../refuse-socket.ts";
import { hangUp } from "../../../lib/network/hang-up.ts";
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
      newest.accept(socket, connection);
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

/**
 * One node:http server for one set of frontend settings. node:http has time limits per server and not per connection,
 * so a settings change starts a new generation; the old one serves its open connections and closes after the last.
 */
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

  accept(socket: Socket, connection: Connection): void {
    this.#open++;
    socket.on("close", () => {
      this.#open--;
      this.#leave();
    });
    this.#state.connections.set(socket, connection);
    this.#server.emit("connection", socket);
  }

  /** Marks the generation as replaced: it takes no new connection, and the open ones keep their settings. */
  retire(): void {
    this.#isRetired = true;
    this.#leave();
  }

  /** Closes idle connections too. node reports that the server does not listen, which is expected here. */
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
  // node would silently drop fields beyond its own limit; received-request.ts counts them and refuses the request.
  server.maxHeadersCount = 0;
  server.on("request", (request, response) => connections.get(request.socket)?.serve(request, response, false));
  server.on("checkContinue", (request, response) => connections.get(request.socket)?.serve(request, response, true));
  // Ignore an unknown expectation, as RFC 9110 §10.1.1 allows; without a listener node would respond with 417.
  server.on("checkExpectation", (request, response) =>
    connections.get(request.socket)?.serve(request, response, false),
  );
  server.on("upgrade", (request, socket: Socket, first) => {
    if (isIgnoredUpgrade(request)) parseWithoutUpgrade(server, request, socket, first);
    else connections.get(socket)?.upgrade(request, socket, first);
  });
  server.on("clientError", (error: NodeJS.ErrnoException, socket: Socket) => connections.get(socket)?.onError(error));
  server.on("connect", (request, socket: Socket, first) => connections.get(socket)?.connect(request, socket, first));
  // The server never listens on a port, but node starts its time limits only with this event.
  server.emit("listening");
  return server;
}

/** A pipelined request that waits for the responses before it. */
interface Pending {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  /** True when the client expects "100 Continue" before it sends the body. */
  readonly waits: boolean;
}

/** The connection is destroyed beyond either limit, because pipelined requests are held in memory. */
const MAX_PENDING = 100;
const MAX_PENDING_BYTES = 65_536;

/** Parser errors about header fields. After the body has begun they can only concern trailers. */
const TRAILER_ERRORS: ReadonlySet<string> = new Set([
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
  /** True when the connection closes after the current response. */
  #isLast = false;
  #activeRequest: ActiveRequest | undefined;
  /** The last request that arrived. While it is incomplete, a parser error concerns its body. */
  #newest: IncomingMessage | undefined;
  /** Filled only when a client pipelines. */
  #pending: Pending[] = [];
  #pendingBytes = 0;
  /** Sent after the responses to the requests in front of the malformed bytes. */
  #parseError: ProxyError | undefined;

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
    const timer =
      maxConnectionMs === undefined ? undefined : setTimeout(() => this.#closeAfterResponse(), maxConnectionMs);
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

  /**
   * Closes the connection after the next response, or after five idle seconds. An immediate close would race with a
   * request that is on its way (RFC 9112 §9.5).
   */
  retire(): void {
    this.#isLast = true;
    this.#socket.once("close", this.#options.clock.after(RETIRED_IDLE_MS, this.#closeAfterResponse.bind(this)));
  }

  /** Closes the connection after the current response, which says `connection: close`, or at once when it is idle. */
  #closeAfterResponse(): void {
    this.#isLast = true;
    if (this.#activeRequest === undefined) hangUp(this.#socket);
  }

  /**
   * Reports whether node may detach its parser for this request. An upgrade with a body, or behind another request,
   * stays an ordinary request, which readHead refuses.
   */
  mayUpgrade(request: IncomingMessage): boolean {
    const { "content-length": length = "0", "transfer-encoding": coding } = request.headers;
    const busy = this.#activeRequest !== undefined;
    const ignored = isIgnoredUpgrade(request);
    // node loses the rest of the packet after an upgrade, so the connection has to close, as after a refused upgrade.
    if (busy && ignored) this.#isLast = true;
    return !busy && (ignored || (length === "0" && coding === undefined));
  }

  connect(request: IncomingMessage, socket: Socket, first: Buffer): void {
    // A response here would interleave with the active one, and the parser has detached: the socket is of no more use.
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

  /**
   * Starts the request, or queues it behind the active one: a client that pipelines gets no more than one that waits.
   */
  serve(request: IncomingMessage, response: ServerResponse, waits: boolean): void {
    this.#newest = request;
    if (this.#activeRequest === undefined) this.#receive(request, response, waits);
    else {
      this.#pendingBytes += request.rawHeaders.reduce((sum, text) => sum + text.length, 0);
      if (this.#pending.length < MAX_PENDING && this.#pendingBytes <= MAX_PENDING_BYTES)
        this.#pending.push({ request, response, waits });
      // Pausing the socket instead would hide the client's disconnect.
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
    // The connection is closing or the client left, so drop the requests that it sent ahead.
    if (!socket.writable) this.#pending = [];
    // A response that began before the drain did not say `connection: close`: close here.
    else if (this.draining) hangUp(socket);
    else if (this.#pending.length > 0) this.#next();
    else if (this.#parseError !== undefined) refuseSocket(socket, this.#parseError);
    // Let an idle connection release the memory of its last request.
    if (this.#pending.length === 0 && this.#activeRequest === undefined) this.#newest = undefined;
  }

  #next(): void {
    const { request, response, waits } = this.#pending.shift() as Pending;
    if (this.#pending.length === 0) this.#pendingBytes = 0;
    this.#receive(request, response, waits);
  }

  /**
   * Handles a parser error. Responses to earlier requests complete first, then the error is sent. An error in the body
   * of the active request ends its response too, because no byte after it can be framed.
   */
  onError(error: NodeJS.ErrnoException): void {
    const socket = this.#socket;
    const inBody = this.#activeRequest !== undefined && this.#newest?.complete === false;
    if (inBody && socket.writable && TRAILER_ERRORS.has(error.code ?? "")) {
      this.#isLast = true;
      this.#activeRequest?.refuse(new ProxyError("request_invalid", { detail: "malformed or forbidden trailer" }));
    } else if (inBody || !socket.writable || error.code === "ECONNRESET") socket.destroy();
    // The client sent data after its own `connection: close`: close as after any last response.
    else if (error.code === "HPE_CLOSED_CONNECTION") this.#closeAfterResponse();
    else if (this.#activeRequest === undefined) refuseSocket(socket, proxyErrorOf(error));
    else this.#parseError ??= proxyErrorOf(error);
  }
}
