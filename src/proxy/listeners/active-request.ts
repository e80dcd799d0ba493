/**
 * One request and its answer, whatever protocol its connection speaks. The exchange is finished exactly once: when the
 * last byte has left, or when the client is lost.
 */
import { messageOf } from "../../lib/errors.ts";
import type { Logger } from "../../lib/log.ts";
import { ProxyError } from "../errors.ts";
import { errorReply } from "../pipeline/error-reply.ts";
import type { Outcome, Reply, Tunnel } from "../pipeline/exchange.ts";
import { HttpExchange, type DeadlineWatcher } from "../pipeline/http-exchange.ts";
import { ChainRunner, type Chain } from "../pipeline/chain-runner.ts";
import { hasConversation } from "../observability/conversation.ts";
import { receivedRequestOf, readHead, rejectedRequestOf, type RequestHead } from "./received-request.ts";
import type { ProtocolServerOptions } from "./protocol-server.ts";
import type { IncomingBody } from "./incoming-body.ts";
import type { TunnelRelay } from "./tcp/tunnel-relay.ts";
import { ReplyWriter } from "./reply-writer.ts";
import type { Peer } from "./peer.ts";
import type { ResponseEncoder } from "./response-encoder.ts";

/** Whoever made the visit and has to hear of its end. */
export interface Host {
  readonly log: Logger;
  /** Connections end with the answer that is under way. */
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

/** Looks at the head of a request and sends it on its way, or refuses it. */
export function startRequest({ host, head, peer, makeBody, encoder, options }: StartRequestOptions): ActiveRequest {
  const { bind, chain, frontend } = options;
  let activeRequest: ActiveRequest;
  let refusal: unknown;
  let isLoop = false;
  try {
    const read = readHead(head, peer, bind);
    const body = read.hasBody ? makeBody() : null;
    activeRequest = new ActiveRequest(host, new HttpExchange(receivedRequestOf(read, body)), encoder, body);
    ({ isLoop } = read);
    if (isLoop) refusal = new ProxyError("loop_detected");
  } catch (error) {
    activeRequest = new ActiveRequest(host, new HttpExchange(rejectedRequestOf(head, peer, bind)), encoder, null);
    refusal = error;
  }
  const { reports } = frontend();
  activeRequest.exchange.reports = reports;
  if (reports.reads.requestBody) activeRequest.exchange.watchRequest();
  host.entered(activeRequest);
  if (refusal === undefined) activeRequest.run(chain);
  // A request that went round is well-formed, and its connection is often that of our own pool.
  else activeRequest.send(errorReply(activeRequest.exchange, refusal), !isLoop);
  return activeRequest;
}

/** Whether a policy has left the answer one after which bytes follow. */
function begins({ protocol }: Tunnel, status: number): boolean {
  return protocol === "" ? status >= 200 && status < 300 : status === 101;
}

/** Its name is the reason that the log gives. */
function clientClosed(): Error {
  const error = new Error("client closed the connection");
  error.name = "ClientClosed";
  return error;
}

/** A body left unread after our answer: up to here it is cheaper to swallow it than to open a connection anew. */
const SWALLOW_BYTES = 65_536;

export class ActiveRequest implements DeadlineWatcher {
  readonly exchange: HttpExchange;
  readonly #host: Host;
  readonly #encoder: ResponseEncoder;
  readonly #body: IncomingBody | null;
  readonly #writer: ReplyWriter;
  #status = 0;
  /** What the client has sent ended it, and not the client. */
  #malformed: ProxyError | undefined;
  /** It made work and led to no answer: the client is gone, or its stream was ended for what it had sent. */
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
    try {
      if (reply.tunnel !== undefined && this.#encoder.join !== undefined && begins(reply.tunnel, reply.status)) {
        this.#join(reply, reply.tunnel);
        return;
      }
      if (this.exchange.reports.reads.responseBody || hasConversation(this.exchange)) this.exchange.watchReply(reply);
      this.#writer.write(reply, close || this.#mustClose());
    } catch (error) {
      this.#host.log.error("answer cannot be written", { error: messageOf(error) });
      if (reply.body !== null && !Buffer.isBuffer(reply.body)) reply.body.destroy();
      if (this.#encoder.headSent) this.#writer.cut();
      else this.#sendError(new ProxyError("internal", { cause: error }));
    }
  }

  /** The request is over in time when its tunnel begins: a tunnel has no limit. */
  #join(reply: Reply, tunnel: Tunnel): void {
    this.exchange.deadlineAtMs = undefined;
    this.#writer.join(reply, tunnel, (relay) => {
      this.#relay = relay;
      this.#end(false);
    });
    this.#joined = true;
  }

  /**
   * The connection is gone. Nothing to do when the answer went out in full.
   * @param malformed why, where it was ended for what the client had sent
   */
  onConnectionLost(malformed?: ProxyError): void {
    if (this.#joined || this.#over) return;
    this.#malformed ??= malformed;
    this.#end(true);
  }

  /** The rest of the request cannot be read: the answer says so, where none has begun, and what has begun breaks off. */
  refuse(error: ProxyError): void {
    if (this.#over || this.#malformed !== undefined) return;
    this.#malformed = error;
    this.exchange.abort(error);
    // What was aborted answers in this turn, with the response policies.
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
    // What was aborted answers in this turn, with the response policies; only what hangs elsewhere is cut short here.
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
