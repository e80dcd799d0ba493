/**
 * A target that speaks HTTP+SSE of 2024-11-05: each session has an event stream that carries all answers, and messages
 * are posted to the address that it names. The stream belongs to one thread, which the id of the session names; other
 * threads of the replica read it there. `compile-target.ts` creates it.
 */
import type { BackendSettings, McpTarget } from "../../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import type { HeaderList } from "../../../lib/header-list.ts";
import { deadlineOfCall } from "../../backends/call-deadline.ts";
import type { BackendDeps, ServiceEndpoint } from "../../backends/handler.ts";
import { HealthRule } from "../../balancing/health.ts";
import { discard } from "../../exchange/discard.ts";
import type { RoutedExchange } from "../../exchange/exchange.ts";
import { startDeadline } from "../../upstream/deadline.ts";
import { callOf } from "../call-record.ts";
import { ERROR_CODES, McpError } from "../mcp-error.ts";
import type { Session, TargetSession } from "../session/session.ts";
import { headersOfCall, NO_ROUTING } from "./call-headers.ts";
import { compileEndpoint, type PickEndpoint } from "./endpoint.ts";
import { EnteringTarget, sessionLost } from "./enter.ts";
import type { MessageQueue } from "./message-queue.ts";
import { openSse, placeOf } from "./open-sse.ts";
import { accepted, passOn, readAnswer, type TargetAnswer } from "./read-answer.ts";
import { sendCall, toMcpError } from "./send-call.ts";
import { spanOf } from "./span-of-message.ts";
import type { SseConnection } from "./sse-connection.ts";
import { connectionsOf, type SseConnections, type SseStream } from "./sse-connections.ts";
import type { McpAnswer, Target, TargetMessage } from "./target.ts";
import { withTraceContext } from "./trace-context.ts";
import { leaveUnlessResult } from "./leave-unless-result.ts";

/** A session that another thread has entered anew may be lost again when it is looked for. */
const MAX_ENTRIES = 3;

/** What a post led to: the messages up to the response to a request, nothing to wait for, or a refusal. */
type Posted = MessageQueue | Extract<TargetAnswer, { kind: "accepted" | "refused" }>;

export class SseTarget implements Target {
  readonly name: string;
  /** A session stays on its stream. */
  readonly isPinned = true;
  readonly #path: string;
  readonly #isService: boolean;
  readonly #pick: PickEndpoint;
  readonly #rule: HealthRule;
  readonly #deps: BackendDeps;
  readonly #connections: SseConnections;
  readonly #entering: EnteringTarget;

  constructor(node: McpTarget, settings: BackendSettings, deps: BackendDeps) {
    this.name = node.name;
    this.#path = node.path;
    this.#isService = node.place.case === "backend";
    this.#pick = compileEndpoint(node, settings, deps);
    this.#rule = new HealthRule(settings.health, deps);
    this.#deps = deps;
    this.#connections = connectionsOf(deps.sessions);
    this.#entering = new EnteringTarget(this.name, this.#postForEntering.bind(this), this.#leave.bind(this));
  }

  async send(out: TargetMessage, session: Session, caller: RoutedExchange): Promise<McpAnswer> {
    const own = session.target(this.name);
    const { method, kind } = out.message;
    if (method === "initialize") return this.#initialize(out, own, caller);
    if (kind === "request" || own.id === undefined) await this.#ensure(session, own, caller);
    // Other messages need no stream and must not open one, but another thread may have entered the session anew.
    else session.refresh(this.name);
    const answer = toAnswer(await this.#post(out, own, caller));
    this.#entering.remember(out, session);
    return answer;
  }

  async listen(session: Session, caller: RoutedExchange): Promise<McpAnswer> {
    const own = session.target(this.name);
    await this.#ensure(session, own, caller);
    const queue = await (await this.#stream(own))?.listen();
    if (queue === undefined) throw sessionLost();
    return { ...accepted(), status: 200, messages: queue, cancel: () => queue.cancel() };
  }

  async end(session: Session): Promise<void> {
    const own = session.target(this.name);
    const left = { ...own };
    own.id = undefined;
    own.entered = false;
    await this.#leave(left);
  }

  async #leave(own: Readonly<TargetSession>): Promise<void> {
    (await this.#stream(own))?.close();
  }

  async #initialize(out: TargetMessage, own: TargetSession, caller: RoutedExchange): Promise<McpAnswer> {
    const connection = await this.#open(own, caller);
    try {
      const posted = await this.#post(out, own, caller);
      own.entered = "push" in posted;
      if (!("push" in posted)) connection.close();
      const answer = toAnswer(posted);
      return { ...answer, messages: leaveUnlessResult(answer.messages, () => connection.close()) };
    } catch (error) {
      connection.close();
      throw error;
    }
  }

  /** Enters the session unless its stream is open in this thread. @throws McpError, ProxyError */
  async #ensure(session: Session, own: TargetSession, caller: RoutedExchange): Promise<void> {
    // Requests of versions without sessions count as entered and have no stream.
    if (session.id === undefined && own.entered && own.id === undefined)
      throw new McpError(ERROR_CODES.unsupportedVersion, "the server speaks versions with sessions only", {
        status: 400,
      });
    if (!own.entered || own.entering !== undefined) return this.#entering.ensure(session, own, caller, false);
    for (let tries = 0; tries < MAX_ENTRIES && (await this.#stream(own)) === undefined; tries++)
      await this.#entering.heal(session, own, caller, own.id);
  }

  /** Returns the stream of a session. One from a place that the target has left is closed. */
  #stream({ id = "", endpoint: pinned }: TargetSession): Promise<SseStream | undefined> {
    const endpoint = this.#pick(pinned);
    const place = endpoint === undefined ? "" : placeOf(endpoint, this.#path);
    return this.#connections.find(id.split(" ", 1)[0] ?? "", place);
  }

  async #open(own: TargetSession, caller: RoutedExchange): Promise<SseConnection> {
    (await this.#stream(own))?.close();
    own.endpoint = undefined;
    const endpoint = this.#endpointOf(own);
    const onClose = (closed: SseConnection): void => this.#connections.remove(closed);
    const place = { target: this.name, path: this.#path, endpoint, rule: this.#rule, onClose };
    const { connection, address } = await openSse(place, caller, this.#deps);
    this.#connections.add(connection);
    own.id = `${this.#connections.nameOf(connection)} ${address}`;
    own.endpoint = this.#isService ? endpoint.name : undefined;
    return connection;
  }

  #endpointOf(own: TargetSession): ServiceEndpoint {
    const endpoint = this.#pick(own.endpoint);
    if (endpoint === undefined) throw sessionLost();
    return endpoint;
  }

  /** Posts a message to the address of the session. */
  async #post(out: TargetMessage, own: TargetSession, caller: RoutedExchange): Promise<Posted> {
    const { kind, id } = out.message;
    const endpoint = this.#endpointOf(own);
    const isRequest = kind === "request" && id !== undefined;
    const stream = isRequest ? await this.#stream(own) : undefined;
    if (isRequest && stream === undefined) throw sessionLost();
    const queue = isRequest ? await stream?.expect(id) : undefined;
    if (queue !== undefined) limitQueue(queue, caller, endpoint.http?.requestTimeoutMs);
    try {
      const answer = await this.#call(out, own, endpoint, caller);
      if (answer.kind === "refused") queue?.cancel();
      return answer.kind === "refused" ? answer : (queue ?? answer);
    } catch (error) {
      queue?.cancel();
      throw error;
    }
  }

  async #call(
    out: TargetMessage,
    { id = "" }: TargetSession,
    endpoint: ServiceEndpoint,
    caller: RoutedExchange,
  ): Promise<Extract<TargetAnswer, { kind: "accepted" | "refused" }>> {
    const headers = headersOfCall(caller, endpoint.authority, { ...NO_ROUTING, accept: "*/*", hasBody: true });
    out.editHeaders?.(headers);
    const request = {
      method: "POST" as const,
      path: id.slice(id.indexOf(" ") + 1),
      headers,
      body: (sent: HeaderList) => withTraceContext(out.message, sent),
      span: spanOf(this.name, out),
    };
    const response = await sendCall(request, endpoint, caller, { upstream: this.#deps.upstream, rule: this.#rule });
    const { status } = response;
    if (status >= 200 && status < 300) {
      // Servers write a word such as "Accepted"; the answer comes on the stream.
      discard({ ...response, upstream: true });
      return { kind: "accepted" };
    }
    const answer = await readAnswer(response, caller.responseLimitBytes, out.version);
    return answer.kind === "refused" ? answer : { kind: "accepted" };
  }

  async #postForEntering(out: TargetMessage, own: TargetSession, caller: RoutedExchange): Promise<TargetAnswer> {
    const connection = out.message.method === "initialize" ? await this.#open(own, caller) : undefined;
    try {
      const posted = await this.#post(out, own, caller);
      if (!("push" in posted)) return posted;
      for await (const message of posted)
        if (message.method === undefined)
          return { kind: "message", message, others: [], headers: caller.requestHeaders };
      throw new McpError(ERROR_CODES.internal, "the server did not answer the request", { status: 500 });
    } catch (error) {
      connection?.close();
      throw error;
    }
  }
}

/** Ends the wait for a response together with the client's request, and at its time limit. */
function limitQueue(queue: MessageQueue, caller: RoutedExchange, timeoutMs: number | undefined): void {
  const call = {
    abort: (error: Error) => {
      const cause = toMcpError(error);
      queue.end(cause instanceof Error ? cause : error);
    },
  };
  const timer = startDeadline(deadlineOfCall(caller, performance.now(), timeoutMs || Infinity), call);
  const lifetime = callOf(caller)?.lifetime ?? caller;
  lifetime.onAbort(call);
  lifetime.onDone(() => {
    clearTimeout(timer);
    queue.cancel();
  });
}

function toAnswer(posted: Posted): McpAnswer {
  if ("push" in posted) return { ...accepted(), status: 200, messages: posted, cancel: () => posted.cancel() };
  return posted.kind === "refused" ? passOn(posted) : accepted();
}
