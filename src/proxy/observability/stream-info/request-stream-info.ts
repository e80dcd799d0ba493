/** Describes a finished request. Each value is computed when a report has a field for it. */
import { AttributeMap } from "../../../cel/values.ts";
import type { Scope } from "../../../cel/scope.ts";
import { isRecord } from "../../../lib/is-record.ts";
import { PROXY_ERRORS, type ProxyErrorCode } from "../../exchange/errors.ts";
import type { Outcome, ReportedExchange, RoutedExchange } from "../../exchange/exchange.ts";
import { isGrpc } from "../../exchange/grpc.ts";
import { grpcStatusOf } from "../../exchange/response-root.ts";
import { describeError } from "../../../lib/errors.ts";
import type { StreamInfo, HttpInfo } from "./stream-info.ts";
import type { Ids } from "../ids.ts";
import { AgentInfo } from "./agent-info.ts";
import { McpInfo } from "./mcp-info.ts";
import { LlmInfo } from "./llm-info.ts";
import { traceIdsOf } from "../tracing/request-trace.ts";

const REQUEST_ID = "x-request-id";

export class RequestStreamInfo implements StreamInfo, HttpInfo {
  readonly llm: LlmInfo | undefined;
  readonly agent: AgentInfo | undefined;
  readonly mcp: McpInfo | undefined;
  readonly status: number;
  /** Reason of docs/reference/errors.md, `Upstream`, `DirectResponse` or `ClientClosed`. */
  readonly outcomeReason: string;
  readonly #exchange: ReportedExchange;
  readonly #outcome: Outcome;
  readonly #ids: Ids;
  readonly #secretParametersOf: (bind: string) => ReadonlySet<string>;

  /** @param secretParametersOf returns names in lower case */
  constructor(
    exchange: ReportedExchange,
    outcome: Outcome,
    ids: Ids,
    secretParametersOf: (bind: string) => ReadonlySet<string>,
  ) {
    this.#exchange = exchange;
    this.#outcome = outcome;
    this.#ids = ids;
    this.#secretParametersOf = secretParametersOf;
    this.llm = LlmInfo.of(exchange.root("llm"));
    const { agentCall, mcpCall } = exchange;
    this.mcp = mcpCall === undefined ? undefined : new McpInfo(mcpCall);
    this.agent = agentCall === undefined ? undefined : new AgentInfo(agentCall, this.grpcStatus);
    this.status = outcome.clientGone ? 499 : outcome.status;
    this.outcomeReason = reasonOf(exchange, outcome);
  }

  get http(): HttpInfo {
    return this;
  }

  get scope(): Scope {
    return this.#exchange;
  }

  get listener(): RoutedExchange["listener"] {
    return this.#exchange.listener;
  }

  get route(): RoutedExchange["route"] {
    return this.#exchange.route;
  }

  get endpoint(): string | undefined {
    return this.#exchange.endpoint;
  }

  get client(): StreamInfo["client"] {
    return this.#exchange.source;
  }

  get connectionId(): bigint {
    return this.#ids.ofConnection(this.#exchange.source);
  }

  get requestId(): string {
    const { reply, queued, requestId } = this.#exchange;
    // A backend may answer with an ID of its own, which then is the ID of the response.
    return reply?.headers.get(REQUEST_ID) ?? queued?.get(REQUEST_ID) ?? requestId;
  }

  get spiffeId(): string | undefined {
    // Plain text has no certificate.
    return this.#exchange.serverName === undefined ? undefined : spiffeIdOf(this.#exchange.source);
  }

  get serverName(): string | undefined {
    return this.#exchange.serverName === "" ? undefined : this.#exchange.serverName;
  }

  get protocol(): string | undefined {
    return this.#exchange.backend?.protocol;
  }

  get error(): string | undefined {
    const { error, errorOrigin } = this.#exchange;
    if (error === undefined) return undefined;
    return errorOrigin === undefined ? describeError(error) : `${describeError(error)} (${errorOrigin})`;
  }

  get reason(): string | undefined {
    return this.outcomeReason === "Upstream" ? undefined : this.outcomeReason;
  }

  get durationMs(): number {
    return this.#outcome.durationMs;
  }

  get method(): string {
    return this.#exchange.method;
  }

  get host(): string {
    return this.#exchange.originalHost;
  }

  get target(): string {
    return this.#exchange.originalTarget;
  }

  get secretParameters(): HttpInfo["secretParameters"] {
    const configured = this.#secretParametersOf(this.#exchange.listener.bind);
    const { secretParameters: read } = this.#exchange;
    // The policy that read them may have been removed since.
    return read === undefined ? configured : new Set([...configured, ...read]);
  }

  get version(): string {
    return this.#exchange.version;
  }

  /** Trailers win over the head. */
  get grpcStatus(): number | undefined {
    const { requestHeaders, reply, replyTrailers: trailers } = this.#exchange;
    if (reply === undefined || !isGrpc(requestHeaders)) return undefined;
    return grpcStatusOf({ status: reply.status, headers: reply.headers, trailers, body: null, bodyPrefix: null });
  }

  get retries(): number {
    return Math.max(0, (this.#exchange.tried?.length ?? 0) - 1);
  }

  get jwtSubject(): string | undefined {
    const claims = this.#exchange.root("jwt");
    if (!isRecord(claims) || !Object.hasOwn(claims, "sub")) return undefined;
    const { sub } = claims;
    return typeof sub === "string" && sub !== "" ? sub : undefined;
  }

  get pickedEndpoint(): string | undefined {
    return this.#exchange.pickedEndpoint;
  }

  get trace(): HttpInfo["trace"] {
    return traceIdsOf(this.#exchange);
  }

  get guardEffect(): HttpInfo["guardEffect"] {
    return this.#exchange.guardChecks?.effect;
  }

  get notes(): HttpInfo["notes"] {
    return this.#exchange.logFields;
  }
}

/** @param connection the roots that expressions see of it */
export function spiffeIdOf(connection: Scope): string | undefined {
  const source = connection.root("source");
  const id = source instanceof AttributeMap ? source.get("spiffeId") : undefined;
  return typeof id === "string" ? id : undefined;
}

function reasonOf(exchange: ReportedExchange, { clientGone, error }: Outcome): string {
  if (clientGone) return "ClientClosed";
  if (error !== undefined)
    return Object.hasOwn(PROXY_ERRORS, error) ? PROXY_ERRORS[error as ProxyErrorCode].reason : "Internal"; // own key, just checked
  if (exchange.guardChecks?.effect?.outcome === "Reject") return "Guardrail";
  return exchange.answeredByUpstream ? "Upstream" : "DirectResponse";
}
