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
import { Run, type Stage } from "../pipeline/chain-runner.ts";
import { hasConversation } from "../observability/conversation.ts";
import { arrivalOf, readHead, refusedArrival, type RequestHead } from "./received-request.ts";
import type { EngineOptions } from "./protocol-server.ts";
import type { IncomingBody } from "./incoming-body.ts";
import type { Joint } from "./tcp/tunnel-relay.ts";
import { ReplyWriter } from "./reply-writer.ts";
import type { Peer } from "./peer.ts";
import type { Wire } from "./response-encoder.ts";

/** Whoever made the visit and has to hear of its end. */
export interface Host {
  readonly log: Logger;
  /** Connections end with the answer that is under way. */
  readonly draining: boolean;
  entered(visit: Visit): void;
  finished(visit: Visit, outcome: Outcome): void;
}

interface Reception {
  readonly host: Host;
  readonly head: RequestHead;
  readonly peer: Peer;
  readonly makeBody: () => IncomingBody;
  readonly wire: Wire;
  readonly options: EngineOptions;
}

/** Looks at the head of a request and sends it on its way, or refuses it. */
export function receive({ host, head, peer, makeBody, wire, options }: Reception): Visit {
  const { bind, stage, frontend } = options;
  let visit: Visit;
  let refusal: unknown;
  let isLoop = false;
  try {
    const read = readHead(head, peer, bind);
    const body = read.hasBody ? makeBody() : null;
    visit = new Visit(host, new HttpExchange(arrivalOf(read, body)), wire, body);
    ({ isLoop } = read);
    if (isLoop) refusal = new ProxyError("loop_detected");
  } catch (error) {
    visit = new Visit(host, new HttpExchange(refusedArrival(head, peer, bind)), wire, null);
    refusal = error;
  }
  const { reports } = frontend();
  visit.exchange.reports = reports;
  if (reports.reads.requestBody) visit.exchange.watchRequest();
  host.entered(visit);
  if (refusal === undefined) visit.run(stage);
  // A request that went round is well-formed, and its connection is often that of our own pool.
  else visit.send(errorReply(visit.exchange, refusal), !isLoop);
  return visit;
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

export class Visit implements DeadlineWatcher {
  readonly exchange: HttpExchange;
  readonly #host: Host;
  readonly #wire: Wire;
  readonly #body: IncomingBody | null;
  readonly #writer: ReplyWriter;
  #status = 0;
  /** What the client has sent ended it, and not the client. */
  #malformed: ProxyError | undefined;
  /** It made work and led to no answer: the client is gone, or its stream was ended for what it had sent. */
  isReset = false;
  #over = false;
  #joined = false;
  #joint: Joint | undefined;

  constructor(host: Host, exchange: HttpExchange, wire: Wire, body: IncomingBody | null) {
    this.#host = host;
    this.exchange = exchange;
    this.#wire = wire;
    this.#body = body;
    this.#writer = new ReplyWriter(wire, exchange);
    exchange.deadlineWatcher = this;
    wire.onFinish = this.#end.bind(this, false);
    if (body !== null) body.onRefused = this.refuse.bind(this);
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
    this.exchange.reply = reply;
    this.#status = reply.status;
    try {
      if (reply.tunnel !== undefined && this.#wire.join !== undefined && begins(reply.tunnel, reply.status)) {
        this.#join(reply, reply.tunnel);
        return;
      }
      if (this.exchange.reports.reads.responseBody || hasConversation(this.exchange)) this.exchange.watchReply(reply);
      this.#writer.write(reply, close || this.#mustClose());
    } catch (error) {
      this.#host.log.error("answer cannot be written", { error: messageOf(error) });
      if (reply.body !== null && !Buffer.isBuffer(reply.body)) reply.body.destroy();
      if (this.#wire.headSent) this.#writer.cut();
      else this.#sendError(new ProxyError("internal", { cause: error }));
    }
  }

  /** The request is over in time when its tunnel begins: a tunnel has no limit. */
  #join(reply: Reply, tunnel: Tunnel): void {
    this.exchange.deadlineAtMs = undefined;
    this.#writer.join(reply, tunnel, (joint) => {
      this.#joint = joint;
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
      else if (!this.#wire.ended) this.#writer.cut();
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
      else if (!this.#wire.ended) this.#writer.cut();
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
    const clientGone = lost && !timedOut && malformed === undefined && !this.#wire.ended && !this.#writer.broken;
    this.isReset = clientGone || (lost && malformed !== undefined);
    this.#host.finished(this, {
      status: this.#status === 0 ? (malformed?.status ?? 499) : this.#status,
      requestBytes: this.#joint?.fromClient ?? this.#body?.bytes ?? 0,
      responseBytes: this.#joint?.fromUpstream ?? this.#writer.bytes,
      durationMs: performance.now() - exchange.startedAtMs,
      error: exchange.error?.code ?? (this.#writer.broken ? "upstream_broken" : undefined),
      clientGone,
    });
  }
}
