/** Opens the event stream of a session with a server of HTTP+SSE, and waits until it says where to post. */
import type { BodyStream } from "../../exchange/body.ts";
import { discard } from "../../exchange/discard.ts";
import type { Abortable, RoutedExchange } from "../../exchange/exchange.ts";
import { deadlineOfCall } from "../../backends/call-deadline.ts";
import type { BackendDeps, ServiceEndpoint } from "../../backends/handler.ts";
import type { HealthRule } from "../../balancing/health.ts";
import { startDeadline } from "../../upstream/deadline.ts";
import type { UpstreamResponse } from "../../upstream/upstream.ts";
import { ERROR_CODES, McpError } from "../mcp-error.ts";
import { headersOfCall, NO_ROUTING } from "./call-headers.ts";
import { decodedBody } from "./read-answer.ts";
import { sendCall, toMcpError } from "./send-call.ts";
import { SseConnection } from "./sse-connection.ts";

/** Time until the server has said where to post. */
const OPEN_MS = 10_000;

export interface SsePlace {
  readonly target: string;
  readonly path: string;
  readonly endpoint: ServiceEndpoint;
  readonly rule: HealthRule;
  readonly onClose: (connection: SseConnection) => void;
}

export interface OpenedSse {
  readonly connection: SseConnection;
  /** Path and query to post to. */
  readonly address: string;
}

/**
 * The stream outlives the request that opens it; until it is open, it ends together with that request.
 * @throws McpError, ProxyError
 */
export async function openSse(
  { target, path, endpoint, rule, onClose }: SsePlace,
  caller: RoutedExchange,
  { upstream }: Pick<BackendDeps, "upstream">,
): Promise<OpenedSse> {
  const opening = new Opening();
  caller.onAbort(opening);
  const timer = startDeadline(deadlineOfCall(caller, performance.now(), OPEN_MS), opening);
  try {
    const headers = headersOfCall(caller, endpoint.authority, NO_ROUTING);
    const request = {
      method: "GET" as const,
      path,
      headers,
      body: () => null,
      span: { name: `GET ${target}`, attributes: [["mcp.target", target] as const] },
      lifetime: opening,
    };
    const response = await sendCall(request, endpoint, caller, { upstream, rule });
    const body = streamOf(response);
    const url = `${endpoint.target.tls === undefined ? "http" : "https"}://${headers.get("host") ?? ""}${path}`;
    const connection = new SseConnection(body, {
      place: placeOf(endpoint, path),
      url,
      limitBytes: caller.responseLimitBytes,
      onClose,
    });
    opening.onAbort({ abort: (error) => connection.close(toMcpError(error)) });
    return { connection, address: await connection.address() };
  } finally {
    clearTimeout(timer);
    opening.isOver = true;
  }
}

/** Returns what tells the streams of a target from those of the place that it had before. */
export function placeOf({ name }: ServiceEndpoint, path: string): string {
  return `${name}${path}`;
}

/** @throws McpError */
function streamOf(response: UpstreamResponse): BodyStream {
  const type = (response.headers.get("content-type") ?? "").toLowerCase();
  const body = response.status === 200 && type.startsWith("text/event-stream") ? decodedBody(response) : null;
  if (body !== null) return body;
  discard({ ...response, upstream: true });
  throw new McpError(ERROR_CODES.internal, "the server offers no stream", {
    status: 500,
    detail: `status ${response.status}`,
  });
}

/** Hands an abort to what is under way. */
class Opening implements Abortable {
  isOver = false;
  readonly #calls: Abortable[] = [];

  onAbort(call: Abortable): void {
    this.#calls.push(call);
  }

  abort(error: Error): void {
    if (!this.isOver) for (const call of this.#calls) call.abort(error);
  }
}
