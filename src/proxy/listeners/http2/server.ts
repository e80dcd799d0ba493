/**
 * The HTTP/2 protocol server of a Bind (RFC 9113). The acceptor hands it sockets after ALPN or the connection preface;
 * node:http2 parses and multiplexes, and each stream becomes an ActiveRequest that finishes exactly once.
 *
 * node:http2 keeps settings per server, so a settings change creates a new server for new connections. All sessions
 * share one `State`: it holds the shutdown of each open session, which a drain begins.
 *
 * The limits against hostile clients are here and in the neighbouring files: ResetFloodGuard (rapid reset, floods of
 * PING and SETTINGS), BufferedBodyLimit (tiny DATA frames), and the header list size. A client beyond them loses its
 * connection with ENHANCE_YOUR_CALM (RFC 9113 §7).
 */
import {
  constants,
  createServer,
  type Http2Server,
  type IncomingHttpHeaders,
  type ServerHttp2Session,
  type ServerHttp2Stream,
} from "node:http2";
import type { Socket } from "node:net";
import { ignore } from "../../../lib/ignore.ts";
import type { Logger } from "../../../lib/log.ts";
import { ProxyError } from "../../exchange/errors.ts";
import type { Outcome } from "../../exchange/exchange.ts";
import type { RequestHead } from "../received-request.ts";
import { ResetFloodGuard } from "./reset-flood-guard.ts";
import type { ProtocolServer, ProtocolServerOptions } from "../protocol-server.ts";
import { GracefulGoaway } from "./graceful-goaway.ts";
import type { Frontend } from "../frontend.ts";
import { BufferedBodyLimit } from "./buffered-body-limit.ts";
import { Http2UpgradeEncoder, upgradeHead } from "./upgrade.ts";
import { Http2ResponseEncoder } from "./response-encoder.ts";
import { IncomingBody, type BodySource } from "../incoming-body.ts";
import { peerOf, type Peer } from "../peer.ts";
import { Pinger } from "./pinger.ts";
import { startRequest, type Host, type ActiveRequest } from "../active-request.ts";

/** Bytes that each field counts in addition to its text (RFC 9113 §6.5.2). */
const FIELD_BYTES = 32;
const MAX_PAIRS = 65_536;
const MAX_STREAMS = 200;
const IDLE_TIMEOUT_MS = 600_000;

export function createHttp2Server(options: ProtocolServerOptions): ProtocolServer {
  const state: State = { draining: false, goaways: new Map(), connecting: undefined };
  let frontend: Frontend | undefined;
  let server: Http2Server | undefined;
  const announce = (): void => {
    state.draining = true;
    for (const goaway of state.goaways.values()) goaway.begin();
  };
  return {
    accept(socket) {
      const now = options.frontend();
      // Settings belong to a server: open sessions keep their server, new ones get one with the new settings.
      if (server === undefined || frontend !== now) server = createServerFor((frontend = now), options, state);
      state.connecting = socket;
      // node emits `session` synchronously, and its handler reads `connecting`.
      server.emit("connection", socket);
      return { retire: () => state.goaways.get(socket)?.begin() };
    },
    announce,
    drain: announce,
  };
}

interface State {
  draining: boolean;
  readonly goaways: Map<Socket, GracefulGoaway>;
  /** Socket of the session that is being created. */
  connecting: Socket | undefined;
}

function createServerFor(frontend: Frontend, options: ProtocolServerOptions, state: State): Http2Server {
  const { http2, maxConnectionMs } = frontend;
  const server = createServer({
    settings: {
      initialWindowSize: http2.windowBytes,
      maxConcurrentStreams: MAX_STREAMS,
      maxFrameSize: http2.frameBytes,
      maxHeaderListSize: http2.maxHeaderBytes,
      enablePush: false,
      enableConnectProtocol: true,
    },
    // Bound the invalid frames and refused streams that a client may send.
    maxSessionInvalidFrames: 100,
    maxSessionRejectedStreams: 100,
    // Derive the number of fields from the byte limit, because each field counts at least 32 bytes.
    maxHeaderListPairs: Math.min(Math.ceil(http2.maxHeaderBytes / FIELD_BYTES), MAX_PAIRS),
    // ResetFloodGuard also weighs completed requests; node's own limit stops bursts before they reach JavaScript.
    streamResetBurst: 2_000,
    streamResetRate: 500,
  });
  server.on("session", (session) => {
    // Only `accept` creates sessions, and it has just set the socket.
    const socket = state.connecting as Socket;
    const goaway = new GracefulGoaway(session, socket, options.clock);
    state.goaways.set(socket, goaway);
    const age = maxConnectionMs === undefined ? undefined : setTimeout(() => goaway.begin(), maxConnectionMs);
    const pinger = http2.pingIntervalMs === undefined ? undefined : new Pinger(session, http2.pingIntervalMs, http2);
    session.on("close", () => {
      state.goaways.delete(socket);
      clearTimeout(age);
      pinger?.stop();
    });
    session.setLocalWindowSize(http2.connectionWindowBytes);
    session.setTimeout(IDLE_TIMEOUT_MS, () => session.close());
    // node closes the session after an error, and its streams emit their own events.
    session.on("error", (error) => options.log.debug("connection failed", { reason: error.message }));
    const connection = new Connection(session, options, frontend, state);
    session.on("stream", (stream, headers, flags, fields) => connection.serve(stream, headers, flags, fields));
    const idle = connection.idleFrame.bind(connection);
    session.on("ping", idle);
    session.on("remoteSettings", idle);
    if (state.draining) goaway.begin();
  });
  return server;
}

class Connection implements Host {
  readonly #session: ServerHttp2Session;
  readonly #resetGuard = new ResetFloodGuard(performance.now());
  readonly #bodyLimit: BufferedBodyLimit;
  readonly #peer: Peer;
  readonly #options: ProtocolServerOptions;
  readonly #maxHeaderBytes: number;
  readonly #canConnect: boolean;
  readonly #state: { readonly draining: boolean };

  constructor(session: ServerHttp2Session, options: ProtocolServerOptions, frontend: Frontend, state: State) {
    this.#session = session;
    this.#bodyLimit = new BufferedBodyLimit(this.#keep.bind(this, false));
    // The session's socket is a Proxy around ours that still exposes the addresses.
    this.#peer = peerOf(session.socket as Socket, options, frontend);
    this.#canConnect = frontend.connect === "route";
    this.#maxHeaderBytes = frontend.http2.maxHeaderBytes;
    this.#options = options;
    this.#state = state;
  }

  get log(): Logger {
    return this.#options.log;
  }

  get draining(): boolean {
    return this.#state.draining;
  }

  serve(stream: ServerHttp2Stream, headers: IncomingHttpHeaders, flags: number, fields: readonly string[]): void {
    // A stream error needs no action of its own: `close` follows and ends the request.
    stream.on("error", ignore);
    if (stream.aborted || stream.destroyed) {
      // The reset arrived together with the request: count it for rapid reset and start no work.
      this.#keep(this.#resetGuard.reset(performance.now()));
      return;
    }
    const isBodyless = (flags & constants.NGHTTP2_FLAG_END_STREAM) !== 0;
    const plain = headOf(fields, {
      isBodyless,
      canConnect: this.#canConnect,
      maxFieldBytes: this.#maxHeaderBytes,
      replica: this.#options.replica,
    });
    const protocol = headers[":protocol"];
    const connects = plain.method === "CONNECT";
    const head = connects && typeof protocol === "string" ? upgradeHead(plain, protocol) : plain;
    const waits = headers.expect?.toLowerCase() === "100-continue";
    const makeBody = (): IncomingBody => new IncomingBody(new Http2BodySource(stream, waits));
    if (!isBodyless) this.#bodyLimit.watch(stream);
    const encoder = connects ? new Http2UpgradeEncoder(stream) : new Http2ResponseEncoder(stream);
    const activeRequest = startRequest({
      host: this,
      head,
      peer: this.#peer,
      makeBody,
      encoder,
      options: this.#options,
    });
    // A reset emits "aborted" at once, but "close" only after all received data has been read.
    const lost = (): void => activeRequest.onConnectionLost(streamError(stream));
    stream.on("aborted", lost);
    stream.on("close", lost);
    if (isBodyless && !connects) stream.resume();
  }

  entered(): void {}

  finished(activeRequest: ActiveRequest, outcome: Outcome): void {
    activeRequest.exchange.finish(outcome);
    this.#options.onFinished(activeRequest.exchange, outcome);
    this.#keep(
      activeRequest.isReset ? this.#resetGuard.reset(performance.now()) : this.#resetGuard.answered(performance.now()),
    );
  }

  ended(): void {
    this.#bodyLimit.stop();
  }

  /** Counts a PING or SETTINGS frame, which costs an acknowledgement and carries no request. */
  idleFrame(): void {
    this.#keep(this.#resetGuard.idleFrame(performance.now()));
  }

  #keep(isTolerable: boolean): void {
    const session = this.#session;
    if (isTolerable || session.destroyed) return;
    const reason = new Error(`${this.#peer.address} asks for work and throws it away`);
    session.destroy(reason, constants.NGHTTP2_ENHANCE_YOUR_CALM);
  }
}

/** Detects malformed trailers or length: node resets such a stream itself and leaves PROTOCOL_ERROR as its code. */
function streamError({ rstCode }: ServerHttp2Stream): ProxyError | undefined {
  if (rstCode !== constants.NGHTTP2_PROTOCOL_ERROR) return undefined;
  return new ProxyError("request_invalid", { detail: "malformed HTTP/2 request" });
}

/** Separates pseudo-header fields from the others and joins split cookie fields again (RFC 9113 §8.2.3). */
function headOf(
  raw: readonly string[],
  more: Pick<RequestHead, "isBodyless" | "canConnect" | "maxFieldBytes" | "replica">,
): RequestHead {
  const pseudo = new Map<string, string>();
  const fields: string[] = [];
  const crumbs: string[] = [];
  for (let at = 0; at < raw.length; at += 2) {
    const name = raw[at] as string;
    const value = raw[at + 1] as string;
    if (name.startsWith(":")) pseudo.set(name, value);
    else if (name === "cookie") crumbs.push(value);
    else fields.push(name, value);
  }
  if (crumbs.length > 0) fields.push("cookie", crumbs.join("; "));
  return {
    method: pseudo.get(":method") ?? "",
    target: pseudo.get(":path") ?? "",
    authority: pseudo.get(":authority"),
    version: "HTTP/2",
    fields,
    isBodyless: more.isBodyless,
    canUpgrade: false,
    canConnect: more.canConnect,
    maxFields: Infinity,
    keepsCase: false,
    maxFieldBytes: more.maxFieldBytes,
    replica: more.replica,
  };
}

class Http2BodySource implements BodySource {
  readonly stream: ServerHttp2Stream;
  trailers: readonly string[] = [];
  readonly keepsCase = false;
  /** The chunks of all streams of a session are views of what it has read. */
  readonly copiesChunks = false;
  #waits: boolean;

  constructor(stream: ServerHttp2Stream, waits: boolean) {
    this.stream = stream;
    this.#waits = waits;
    stream.on("trailers", this.#keep.bind(this));
  }

  #keep(_headers: unknown, _flags: unknown, raw: readonly string[] = []): void {
    this.trailers = raw;
  }

  get isComplete(): boolean {
    return this.stream.readableEnded;
  }

  wanted(): void {
    if (this.#waits && !this.stream.headersSent) this.stream.additionalHeaders({ ":status": 100 });
    this.#waits = false;
  }
}
