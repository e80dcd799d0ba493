/** What is remembered of a finished request: one access-log record and its metrics. Never a secret, never a query. */
import type { AccessLog, AccessRecord } from "../telemetry/access-log.ts";
import type { Metrics } from "../telemetry/metrics.ts";
import { PROXY_ERRORS, type ProxyErrorCode } from "./errors.ts";
import type { Outcome } from "./pipeline/exchange.ts";
import { isGrpc } from "./pipeline/grpc.ts";
import type { HttpExchange } from "./pipeline/http-exchange.ts";
import { grpcStatusOf, pathOf } from "./pipeline/roots.ts";
import { readLlm } from "./record-llm.ts";
import { sampleOf } from "./record-metrics.ts";

export interface Telemetry {
  readonly accessLog?: AccessLog;
  readonly metrics?: Metrics;
}

export function createRecorder(telemetry: Telemetry | undefined): (exchange: HttpExchange, outcome: Outcome) => void {
  const { accessLog, metrics } = telemetry ?? {};
  if (accessLog === undefined && metrics === undefined) return () => undefined;
  return (exchange, outcome) => {
    const reason = reasonOf(exchange, outcome);
    const status = outcome.clientGone ? 499 : outcome.status;
    const llm = readLlm(exchange.root("llm"));
    metrics?.request(sampleOf(exchange, outcome, { reason, status, llm }));
    if (accessLog?.enabled !== true || !exchange.reports.accessLog.wants(exchange)) return;
    accessLog.write(fieldsOf(exchange, outcome, { reason, status, llm: llm?.fields }));
  };
}

function fieldsOf(
  exchange: HttpExchange,
  outcome: Outcome,
  more: { reason: string; status: number; llm: AccessRecord | undefined },
): AccessRecord {
  const { listener, route, backend, source } = exchange;
  return {
    gateway: listener.gateway === "" ? undefined : `${listener.namespace}/${listener.gateway}`,
    listener: listener.name === "" ? undefined : listener.name,
    route_rule: route?.rule,
    route: route === undefined ? undefined : `${route.namespace}/${route.name}`,
    endpoint: exchange.endpoint,
    "src.addr": `${source.address}:${source.port}`,
    "http.method": exchange.method,
    "http.host": exchange.originalHost,
    "http.path": pathOf(exchange.originalTarget),
    "http.version": exchange.version,
    "http.status": more.status,
    "grpc.status": grpcStatus(exchange),
    protocol: backend?.protocol,
    ...more.llm,
    ...(exchange.logFields === undefined ? {} : Object.fromEntries(exchange.logFields)),
    "retry.attempt": retries(exchange),
    error: exchange.error === undefined ? undefined : describe(exchange.error),
    reason: more.reason === "Upstream" ? undefined : more.reason,
    duration: `${Math.round(outcome.durationMs)}ms`,
  };
}

/** The trailers win. */
function grpcStatus({ requestHeaders, reply, replyTrailers: trailers }: HttpExchange): number | undefined {
  if (reply === undefined || !isGrpc(requestHeaders)) return undefined;
  return grpcStatusOf({ status: reply.status, headers: reply.headers, trailers, body: null, bodyPrefix: null });
}

function retries({ tried }: HttpExchange): number | undefined {
  return tried === undefined || tried.length < 2 ? undefined : tried.length - 1;
}

/** For operators: what a client is not told. */
export function describe({ message, detail }: { message: string; detail: string | undefined }): string {
  return detail === undefined || detail === "" ? message : `${message}: ${detail}`;
}

function reasonOf(exchange: HttpExchange, { clientGone, error }: Outcome): string {
  if (clientGone) return "ClientClosed";
  if (error !== undefined)
    return Object.hasOwn(PROXY_ERRORS, error) ? PROXY_ERRORS[error as ProxyErrorCode].reason : "Internal"; // own key, just checked
  return exchange.answeredByUpstream ? "Upstream" : "DirectResponse";
}
