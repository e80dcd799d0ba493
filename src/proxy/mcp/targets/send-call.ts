/**
 * Sends one HTTP request to an MCP target: the attempt that health looks at, the span, the time limit. What a target
 * cannot be reached with becomes the JSON-RPC error that clients get.
 */
import type { Attribute } from "../../../telemetry/attributes.ts";
import type { HeaderList } from "../../../lib/header-list.ts";
import { Attempt } from "../../backends/attempt.ts";
import { deadlineOfCall } from "../../backends/call-deadline.ts";
import type { BackendDeps, ServiceEndpoint } from "../../backends/handler.ts";
import type { HealthRule } from "../../balancing/health.ts";
import { discard } from "../../exchange/discard.ts";
import { ProxyError, type ProxyErrorCode } from "../../exchange/errors.ts";
import type { RoutedExchange } from "../../exchange/exchange.ts";
import { beginCallSpan } from "../../observability/tracing/call-span.ts";
import { fixedVersion } from "../../upstream/http-version.ts";
import { sendSigned } from "../../upstream/send-signed.ts";
import type { UpstreamRequest, UpstreamResponse } from "../../upstream/upstream.ts";
import { callOf } from "../call-record.ts";
import { ERROR_CODES, McpError } from "../mcp-error.ts";

export interface TargetRequest {
  readonly method: "POST" | "GET" | "DELETE";
  /** Path and query. */
  readonly path: string;
  readonly headers: HeaderList;
  /** Made after the span began, whose trace context the headers then carry. */
  readonly body: (headers: HeaderList) => Buffer | null;
  /** Name and attributes of the span. */
  readonly span: { readonly name: string; readonly attributes: readonly Attribute[] };
  /** What ends the call where it outlives the client's request; it then has no time limit of its own. */
  readonly lifetime?: UpstreamRequest["abort"];
}

/** @throws McpError when the target cannot be reached; ProxyError when the request ended or took too long */
export async function sendCall(
  request: TargetRequest,
  endpoint: ServiceEndpoint,
  caller: RoutedExchange,
  { upstream, rule }: Pick<BackendDeps, "upstream"> & { readonly rule: HealthRule },
): Promise<UpstreamResponse> {
  const { method, headers, span } = request;
  const { auth, http } = endpoint;
  caller.endpoint = endpoint.name;
  const { target, signingScope } = endpoint;
  const authCall = { caller, host: target.host, connection: target, signingScope };
  const path = auth === undefined ? request.path : await auth.place(authCall, headers, request.path);
  const attempt = new Attempt(caller, endpoint.record, rule, false);
  if (caller.trace !== undefined)
    attempt.span = beginCallSpan(caller.trace, caller, { method, path, headers }, { subtype: "Mcp", ...span });
  try {
    const body = request.body(headers);
    const outgoing: UpstreamRequest = {
      version: fixedVersion(http?.version) ?? (endpoint.target.tls === undefined ? "http1" : "negotiated"),
      method,
      path,
      headers,
      body,
      ...deadlineOfCall(caller, performance.now(), http?.requestTimeoutMs || Infinity),
      abort: callOf(caller)?.lifetime ?? caller,
      ...(request.lifetime === undefined ? {} : { abort: request.lifetime, deadlineAtMs: undefined }),
    };
    const response = await sendSigned(
      { auth, call: authCall, request: { method, path, headers, body: body ?? EMPTY } },
      () => upstream.send(endpoint.target, outgoing),
      discard,
    );
    const answer = { ...response };
    if (attempt.readsBody) await attempt.answeredWithBody(answer);
    else attempt.answered(answer);
    return answer;
  } catch (error) {
    attempt.failed(error);
    throw toMcpError(error);
  }
}

const EMPTY = Buffer.alloc(0);

/** Failures of the target itself; clients read them as an internal error of the server. */
const UNREACHABLE: ReadonlySet<ProxyErrorCode> = new Set<ProxyErrorCode>([
  "connect_timeout",
  "upstream_unreachable",
  "upstream_broken",
  "response_invalid",
  "destination_refused",
  "tunnel_unauthorized",
]);

/** Turns what broke a call or its answer into the error for the client. */
export function toMcpError(error: unknown): unknown {
  if (!(error instanceof ProxyError)) return error;
  if (error.code === "endpoint_unavailable")
    return new McpError(ERROR_CODES.internal, "no server is available", { status: 503, cause: error });
  if (!UNREACHABLE.has(error.code)) return error;
  return new McpError(ERROR_CODES.internal, "the server cannot be reached", { status: 500, cause: error });
}
