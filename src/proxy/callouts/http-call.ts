/** One HTTP call through the upstream client, for ServiceCallout; the response body is read whole, up to a limit. */
import { HeaderList } from "../../lib/header-list.ts";
import type { BodyStream } from "../exchange/body.ts";
import { collect } from "../exchange/collect.ts";
import { forwardable } from "../exchange/fields.ts";
import type { Upstream, UpstreamRequest } from "../upstream/upstream.ts";
import type { UpstreamTarget } from "../upstream/dial/connection-settings.ts";
import { ProxyError, type ProxyErrorCode } from "../exchange/errors.ts";
import { CalloutError, type CalloutAnswer } from "./callout.ts";

/** @throws CalloutError, or the error that the exchange was aborted with */
export async function callHttp(
  upstream: Upstream,
  target: UpstreamTarget,
  request: UpstreamRequest,
  limitBytes: number,
): Promise<CalloutAnswer> {
  try {
    const { status, headers, body } = await upstream.send(target, request);
    return {
      status,
      headers: new HeaderList(forwardable(headers.raw)),
      body: body === null ? Buffer.alloc(0) : await readWhole(body, limitBytes),
    };
  } catch (error) {
    throw error instanceof ProxyError && error.code !== "request_timeout" ? failedCall(error) : error;
  }
}

/**
 * Marks a route to the service that is closed on purpose, and a missing credential, as misconfigured, so that no failure
 * mode opens it.
 */
export function failedCall(error: ProxyError): CalloutError {
  const misconfigured = MISCONFIGURED.has(error.code);
  return new CalloutError(`${error.message}: ${error.detail ?? error.code}`, { cause: error, misconfigured });
}

const MISCONFIGURED: ReadonlySet<ProxyErrorCode> = new Set<ProxyErrorCode>([
  "backend_invalid",
  "credential_unavailable",
  "policy_refused",
]);

async function readWhole(body: BodyStream, limitBytes: number): Promise<Buffer> {
  const whole = await collect(body, limitBytes);
  if (whole === undefined) throw new CalloutError(`the answer is larger than ${limitBytes} bytes`);
  return whole;
}
