/**
 * One request and its response, independent of the protocol of the connection. The HTTP/1.1 and HTTP/2 servers start
 * one per request; it runs the chain, writes the reply, and reports the outcome to its host.
 *
 * It is a small state machine. Four events may come in any order and even in the same event-loop turn: the chain's
 * reply, the deadline, a malformed rest of the request, and the loss of the connection.
 *
 *   running ──reply, error or deadline──► responding ──last byte written, or cut──► over
 *      │                                        │  └──tunnel opens──► joined ──both sides closed──► over
 *      └────────── connection lost ─────────────┴──────────────────────────────────────────────────► over
 *
 * `#status` is 0 while running, `#joined` marks a tunnel, and `#over` makes the end happen exactly once. Without that
 * guard a lost connection after the last byte would finish the exchange twice: two log lines, and metrics that drift.
 */
import { messageOf } from "../../lib/errors.ts";
import type { Logger } from "../../lib/log.ts";
import { ProxyError } from "../exchange/errors.ts";
import { errorReply } from "../pipeline/error-reply.ts";
import type { Outcome, Reply, Tunnel } from "../exchange/exchange.ts";
import { HttpExchange, type DeadlineWatcher } from "../pipeline/http-exchange.ts";
import { ChainRunner, type Chain } from "../pipeline/chain-runner.ts";
import { hasConversation } from "../observability/conversation.ts";
import { receivedRequestOf, readHead, rejectedRequestOf, type RequestHead } from "./received-request.ts";
import type { ProtocolServerOptions } from "./protocol-server.ts";
import type { IncomingBody } from "./incoming-body.ts";
import type { TunnelRelay } from "./tunnel-relay.ts";
import { ReplyWriter } from "./reply-writer.ts";
import type { Peer } from "./peer.ts";
import type { ResponseEncoder } from "./response-encoder.ts";

/** The connection that owns a request; it learns when the request starts and finishes. */
export interface Host {
  readonly log: Logger;
  /** True when the connection has to close after the current response. */
  readonly draining: boolean;
  entered(activeRequest: ActiveRequest): void;
  finished(activeRequest: ActiveRequest, outcome: Outcome): void;
}

interface StartRequestOptions {
  readonly host: Host;
  readonly head: RequestHead;
  readonly peer: Peer;
  readonly makeBody: () => IncomingBody;
  readonly encoder: ResponseEncoder;
  readonly options: ProtocolServerOptions;
}

/** Validates the head of a request, then runs the chain or sends the error reply. */
export function startRequest({ host, head, peer, makeBody, encoder, options }: StartRequestOptions): ActiveRequest {
  const { bind, chain, frontend, debugTraces } = options;
  let activeRequest: ActiveRequest;
  let requestError: unknown;
  let isLoop = false;
  try {
    const read = readHead(head, peer, bind);
    const body = read.hasBody ? makeBody() : null;
    activeRequest = new ActiveRequest(host, new HttpExchange(receivedRequestOf(read, body)), encoder, body);
    ({ isLoop } = read);
    if (isLoop) requestError = new ProxyError("loop_detected");
  } catch (error) {
    activeRequest = new ActiveRequest(host, new HttpExchange(rejectedRequestOf(head, peer, bind)), encoder, null);
    requestError = error;
  }
  const { reports } = frontend();
  activeRequest.exchange.reports = reports;
  if (debugTraces.isWaiting) activeRequest.exchange.debug = debugTraces.begin(activeRequest.exchange);
  if (reports.reads.requestBody || activeRequest.exchange.debug !== undefined) activeRequest.exchange.watchRequest();
  host.entered(activeRequest);
  options.onEntered(activeRequest.exchange);
  if (requestError === undefined) activeRequest.run(chain);
  // Keep the connection after a loop: the request is well-formed, and the connection often belongs to our own pool.
  else activeRequest.send(errorReply(activeRequest.exchange, requestError), !isLoop);
  return activeRequest;
}

/** Reports whether the status still opens the tunnel; a policy may have replaced the upstream's response. */
function begins({ protocol }: Tunnel, status: number): boolean {
  return protocol === "" ? status >= 200 && status < 300 : status === 101;
}

/** Creates the abort error; the log prints its name as the reason. */
function clientClosed(): Error {
  const error = new Error("client closed the connection");
  error.name = "ClientClosed";
  return error;
}

/** Up to this size, reading and dropping the unread rest of a request body is cheaper than a new connection. */
const SWALLOW_BYTES = 65_536;

export class ActiveRequest implements DeadlineWatcher {
  readonly exchange: HttpExchange;
  readonly #host: Host;
  readonly #encoder: ResponseEncoder;
  readonly #body: IncomingBody | null;
  readonly #writer: ReplyWriter;
  #status = 0;
  /** Set when the request was ended because of malformed input, as opposed to a client that left. */
  #malformed: ProxyError | undefined;
  /**
   * True when the request caused work and got no response: the client left, or its stream was ended for malformed
   * input. HTTP/2 counts these against rapid reset (CVE-2023-44487).
   */
  isReset = false;
  #over = false;
  #joined = false;
  #relay: TunnelRelay | undefined;

  constructor(host: Host, exchange: HttpExchange, encoder: ResponseEncoder, body: IncomingBody | null) {
    this.#host = host;
    this.exchange = exchange;
    this.#encoder = encoder;
    this.#body = body;
    this.#writer = new ReplyWriter(encoder, exchange);
    exchange.deadlineWatcher = this;
    encoder.onFinish = this.#end.bind(this, false);
    if (body !== null) body.onRefused = this.refuse.bind(this);
  }

  run(chain: Chain): void {
    const reply = ChainRunner.start(this.exchange, chain);
    if (reply instanceof Promise) void reply.then((late) => this.send(late, false));
    else this.send(reply, false);
  }

  send(reply: Reply, close: boolean): void {
    if (this.#over || this.#status !== 0) {
      if (reply.body !== null && !Buffer.isBuffer(reply.body)) reply.body.destroy();
      return;
    }
    this.exchange.reply = reply;
    this.#status = reply.status;
    this.exchange.debug?.response("final response", reply);
    try {
      if (reply.tunnel !== undefined && this.#encoder.join !== undefined && begins(reply.tunnel, reply.status)) {
        this.#join(reply, reply.tunnel);
        return;
      }
      if (this.#readsReply()) this.exchange.watchReply(reply);
      if (reply.body !== null && !Buffer.isBuffer(reply.body)) this.exchange.releaseRequestBody();
      this.#writer.write(reply, close || this.#mustClose());
    } catch (error) {
      this.#host.log.error("answer cannot be written", { error: messageOf(error) });
      if (reply.body !== null && !Buffer.isBuffer(reply.body)) reply.body.destroy();
      if (this.#encoder.headSent) this.#writer.cut();
      else this.#sendError(new ProxyError("internal", { cause: error }));
    }
  }

  #readsReply(): boolean {
    const { reports, debug } = this.exchange;
    return reports.reads.responseBody || debug !== undefined || hasConversation(this.exchange);
  }

  /** Opens the tunnel. The request met its deadline at this point; the tunnel itself has no time limit. */
  #join(reply: Reply, tunnel: Tunnel): void {
    this.exchange.deadlineAtMs = undefined;
    this.#writer.join(reply, tunnel, (relay) => {
      this.#relay = relay;
      this.#end(false);
    });
    this.#joined = true;
  }

  /**
   * Ends the request when the connection is gone. Does nothing after a complete response or while a tunnel runs.
   * @param malformed the reason, when the stream was ended for what the client had sent
   */
  onConnectionLost(malformed?: ProxyError): void {
    if (this.#joined || this.#over) return;
    this.#malformed ??= malformed;
    this.#end(true);
  }

  /** Refuses a request whose rest cannot be read: sends the error, or cuts a response that has begun. */
  refuse(error: ProxyError): void {
    if (this.#over || this.#malformed !== undefined) return;
    this.#malformed = error;
    this.exchange.abort(error);
    // The aborted chain replies in this turn and still runs its response policies; let that reply go first.
    setImmediate(() => {
      if (this.#over) return;
      if (this.#status === 0) this.#sendError(error);
      else if (!this.#encoder.ended) this.#writer.cut();
    });
  }

  #sendError(error: ProxyError): void {
    const reply = errorReply(this.exchange, error);
    this.exchange.reply = reply;
    this.#status = reply.status;
    this.#writer.write(reply, true);
  }

  onDeadline(): void {
    // The aborted chain replies in this turn, with its response policies; step in only when it hangs elsewhere.
    setImmediate(() => {
      if (this.#over) return;
      if (this.#status === 0) this.#sendError(new ProxyError("request_timeout"));
      else if (!this.#encoder.ended) this.#writer.cut();
    });
  }

  #mustClose(): boolean {
    if (this.#host.draining || this.#malformed !== undefined) return true;
    if (this.#body === null || this.#body.isComplete) return false;
    const { contentLength } = this.exchange;
    return contentLength === undefined || contentLength > SWALLOW_BYTES;
  }

  #end(lost: boolean): void {
    if (this.#over) return;
    this.#over = true;
    const { exchange } = this;
    const timedOut = exchange.aborted;
    const malformed = this.#malformed;
    if (malformed !== undefined) exchange.error = malformed;
    if (lost) {
      this.#writer.abandon();
      exchange.abort(malformed ?? clientClosed());
    }
    const clientGone = lost && !timedOut && malformed === undefined && !this.#encoder.ended && !this.#writer.broken;
    this.isReset = clientGone || (lost && malformed !== undefined);
    this.#host.finished(this, {
      status: this.#status === 0 ? (malformed?.status ?? 499) : this.#status,
      requestBytes: this.#relay?.fromClient ?? this.#body?.bytes ?? 0,
      responseBytes: this.#relay?.fromUpstream ?? this.#writer.bytes,
      durationMs: performance.now() - exchange.startedAtMs,
      error: exchange.error?.code ?? (this.#writer.broken ? "upstream_broken" : undefined),
      clientGone,
    });
  }
}
