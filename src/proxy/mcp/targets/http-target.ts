/**
 * A target that speaks Streamable HTTP: one POST for each message, a GET for what it sends on its own, a DELETE at the
 * end of a session. `compile-target.ts` creates it.
 */
import type { BackendSettings, McpTarget } from "../../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import type { Attribute } from "../../../telemetry/attributes.ts";
import type { BackendDeps, ServiceEndpoint } from "../../backends/handler.ts";
import { HealthRule } from "../../balancing/health.ts";
import { discard } from "../../exchange/discard.ts";
import type { RoutedExchange } from "../../exchange/exchange.ts";
import { callOf } from "../call-record.ts";
import { ERROR_CODES, McpError } from "../mcp-error.ts";
import type { Session, TargetSession } from "../session/session.ts";
import { headersOfCall, NO_ROUTING } from "./call-headers.ts";
import { compileEndpoint, type PickEndpoint } from "./endpoint.ts";
import { EnteringTarget, sessionLost } from "./enter.ts";
import { ListenStream } from "./listen-stream.ts";
import { accepted, answerWith, passOn, readAnswer, type TargetAnswer } from "./read-answer.ts";
import { ResponseStream } from "./response-stream.ts";
import { sendCall } from "./send-call.ts";
import { spanOf } from "./span-of-message.ts";
import { withTraceContext } from "./trace-context.ts";
import type { McpAnswer, Target, TargetMessage } from "./target.ts";
import { HeaderList } from "../../../lib/header-list.ts";

/** Sessions that a call goes through until one is new; a target that loses them all the time has none. */
const MAX_HEALS = 4;
const BOTH_TYPES = "application/json, text/event-stream";
/** Session ids are visible ASCII (2025-03-26, "Session Management"). */
const SESSION_ID = /^[\x21-\x7e]{1,1024}$/;
/** Time for the DELETE at the end of a session, which no client waits for. */
const END_MS = 5_000;

export class HttpTarget implements Target {
  readonly name: string;
  readonly isPinned: boolean;
  readonly #path: string;
  readonly #pick: PickEndpoint;
  readonly #rule: HealthRule;
  readonly #deps: BackendDeps;
  readonly #entering: EnteringTarget;

  constructor(node: McpTarget, settings: BackendSettings, deps: BackendDeps) {
    this.name = node.name;
    this.isPinned = node.place.case === "backend";
    this.#path = node.path;
    this.#pick = compileEndpoint(node, settings, deps);
    this.#rule = new HealthRule(settings.health, deps);
    this.#deps = deps;
    this.#entering = new EnteringTarget(this.name, this.#post.bind(this), this.#leave.bind(this));
  }

  async send(out: TargetMessage, session: Session, caller: RoutedExchange): Promise<McpAnswer> {
    const own = session.target(this.name);
    callOf(caller)?.called(this.name, out.name);
    if (out.message.method === "initialize")
      return this.#toAnswer(await this.#initialize(out, own, caller), out, own, caller);
    await this.#entering.ensure(session, own, caller, this.#isGone(own));
    const answer = await this.#callHealing(session, own, caller, () => this.#post(out, own, caller));
    if (answer.kind === "refused" && own.id === undefined) this.#entering.forgetSessionless();
    this.#entering.remember(out, session);
    return this.#toAnswer(answer, out, own, caller);
  }

  async listen(session: Session, caller: RoutedExchange): Promise<McpAnswer> {
    const own = session.target(this.name);
    await this.#entering.ensure(session, own, caller, this.#isGone(own));
    const get = () => this.#get(own, session.client.version, caller, undefined);
    const answer = await this.#callHealing(session, own, caller, get);
    if (answer.kind === "refused") return passOn(answer);
    if (answer.kind !== "events")
      throw new McpError(ERROR_CODES.internal, "the server offers no stream", { status: 500 });
    const stream = new ListenStream(answer.events, async (lastEventId) => {
      const resumed = await this.#get(own, session.client.version, caller, lastEventId);
      return resumed.kind === "events" ? resumed.events : undefined;
    });
    return { ...accepted(), status: 200, messages: stream, cancel: () => stream.cancel() };
  }

  /** Never fails: a target that does not end the session ends it by its own time limit. */
  async end(session: Session, caller: RoutedExchange): Promise<void> {
    const own = session.target(this.name);
    if (own.id === undefined) return;
    const left = { ...own };
    own.id = undefined;
    own.entered = false;
    await this.#leave(left, session, caller);
  }

  async #leave(own: Readonly<TargetSession>, session: Session, caller: RoutedExchange): Promise<void> {
    const { id } = own;
    if (id === undefined) return;
    try {
      const endpoint = this.#pick(this.isPinned ? own.endpoint : undefined);
      if (endpoint === undefined) return;
      const routing = { ...NO_ROUTING, version: session.client.version, sessionId: id };
      const { body } = await this.#deps.upstream.send(endpoint.target, {
        version: "http1",
        method: "DELETE",
        path: this.#path,
        headers: headersOfCall(caller, endpoint.authority, routing),
        body: null,
        deadlineAtMs: performance.now() + END_MS,
        timeoutCode: "backend_timeout",
      });
      body?.destroy();
    } catch (error) {
      this.#deps.log.debug("the session with a target could not be ended", { target: this.name, error: String(error) });
    }
  }

  /**
   * Sends a call, and sends it again when the target has lost the session: once with a session that is new. One that
   * another call or thread has entered may be lost as well, or left because a third one was faster.
   * @throws McpError when the session cannot be healed
   */
  async #callHealing(
    session: Session,
    own: TargetSession,
    caller: RoutedExchange,
    call: () => Promise<TargetAnswer>,
  ): Promise<TargetAnswer> {
    for (let attempts = 0, isNew = false; !isNew && attempts < MAX_HEALS; attempts++) {
      const usedId = own.id;
      const answer = await call();
      if (!isLost(answer, usedId)) return answer;
      isNew = await this.#entering.heal(session, own, caller, usedId);
    }
    const usedId = own.id;
    const answer = await call();
    if (isLost(answer, usedId)) throw sessionLost();
    return answer;
  }

  async #initialize(out: TargetMessage, own: TargetSession, caller: RoutedExchange): Promise<TargetAnswer> {
    own.id = undefined;
    own.endpoint = undefined;
    const answer = await this.#post(out, own, caller);
    own.entered = answer.kind === "message" || answer.kind === "events";
    return answer;
  }

  /** Whether the endpoint that the session stays on no longer belongs to the Service. */
  #isGone(own: TargetSession): boolean {
    return this.isPinned && own.endpoint !== undefined && this.#pick(own.endpoint) === undefined;
  }

  /** Sends a message; the answer to `initialize` gives the session its id and endpoint. */
  async #post(out: TargetMessage, own: TargetSession, caller: RoutedExchange): Promise<TargetAnswer> {
    const { message, version, name } = out;
    const endpoint = this.#endpointOf(own);
    const isInitialize = message.method === "initialize";
    const headers = headersOfCall(caller, endpoint.authority, {
      accept: BOTH_TYPES,
      hasBody: true,
      version: isInitialize ? undefined : version,
      sessionId: own.id,
      method: message.method,
      name,
      lastEventId: undefined,
    });
    out.editHeaders?.(headers);
    const request = {
      method: "POST" as const,
      path: this.#path,
      headers,
      body: (sent: HeaderList) => withTraceContext(message, sent),
      span: spanOf(this.name, out),
    };
    const response = await sendCall(request, endpoint, caller, { upstream: this.#deps.upstream, rule: this.#rule });
    if (message.kind !== "request" && response.status >= 200 && response.status < 300) {
      // Nothing is asked, so nothing is read: servers accept notifications with several statuses and bodies.
      discard({ ...response, upstream: true });
      return { kind: "accepted" };
    }
    const answer = await readAnswer(response, caller.responseLimitBytes, version);
    if (isInitialize && (answer.kind === "message" || answer.kind === "events"))
      this.#enter(own, answer.headers, endpoint);
    return answer;
  }

  #enter(own: TargetSession, headers: HeaderList, { name }: ServiceEndpoint): void {
    const id = headers.get("mcp-session-id");
    if (id !== undefined && !SESSION_ID.test(id))
      throw new McpError(ERROR_CODES.internal, "the session id of the server cannot be used", { status: 500 });
    own.id = id;
    own.endpoint = this.isPinned ? name : undefined;
  }

  async #get(
    own: TargetSession,
    version: string,
    caller: RoutedExchange,
    lastEventId: string | undefined,
  ): Promise<TargetAnswer> {
    const endpoint = this.#endpointOf(own);
    const headers = headersOfCall(caller, endpoint.authority, {
      ...NO_ROUTING,
      version,
      sessionId: own.id,
      lastEventId,
    });
    const span = { name: `GET ${this.name}`, attributes: [["mcp.target", this.name]] as Attribute[] };
    const request = { method: "GET" as const, path: this.#path, headers, body: () => null, span };
    const response = await sendCall(request, endpoint, caller, { upstream: this.#deps.upstream, rule: this.#rule });
    return readAnswer(response, caller.responseLimitBytes, version);
  }

  #endpointOf(own: TargetSession): ServiceEndpoint {
    const endpoint = this.#pick(this.isPinned ? own.endpoint : undefined);
    if (endpoint === undefined) throw sessionLost();
    return endpoint;
  }

  #toAnswer(
    answer: TargetAnswer,
    { message, version }: TargetMessage,
    own: TargetSession,
    caller: RoutedExchange,
  ): McpAnswer {
    if (answer.kind === "refused") return passOn(answer);
    if (message.kind !== "request" || message.id === undefined) return accepted();
    if (answer.kind === "events") {
      const stream = new ResponseStream(answer.events, message.id, async (lastEventId) => {
        const resumed = await this.#get(own, version, caller, lastEventId);
        return resumed.kind === "events" ? resumed.events : undefined;
      });
      return { ...accepted(), status: 200, messages: stream, cancel: () => stream.cancel() };
    }
    if (answer.kind === "accepted" || answer.message.id !== message.id || answer.message.method !== undefined)
      throw new McpError(ERROR_CODES.internal, "the server did not answer the request", { status: 500 });
    return answerWith(answer.message, answer.others);
  }
}

/** Whether the target no longer knows the session: 404 to a request that carried its id, and nothing else. */
function isLost(answer: TargetAnswer, usedId: string | undefined): boolean {
  return usedId !== undefined && answer.kind === "refused" && answer.status === 404;
}
