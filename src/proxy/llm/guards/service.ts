/**
 * Calls of guard services: JSON over HTTP, bounded in time and size by the callout. The guards that ask a service use
 * it. A service whose answer cannot be used has failed, so that the failure mode decides.
 */
import { HeaderList } from "../../../lib/header-list.ts";
import { CalloutError, type Callout, type CalloutAnswer } from "../../callouts/callout.ts";
import type { RoutedExchange } from "../../exchange/exchange.ts";
import { parseObject, type JsonObject } from "../shared/json.ts";

interface ServiceRequest {
  readonly path: string;
  readonly body: JsonObject;
  readonly method?: string;
  readonly authority?: string | undefined;
  readonly headers?: HeaderList;
}

/** @throws CalloutError when the service cannot be asked or does not answer with a JSON object */
export async function askService(
  callout: Callout,
  { path, body, method = "POST", authority, headers = new HeaderList() }: ServiceRequest,
  exchange: RoutedExchange,
): Promise<{ readonly status: number; readonly body: JsonObject }> {
  if (callout.invalidReason !== undefined) throw new CalloutError(callout.invalidReason, { misconfigured: true });
  headers.set("content-type", "application/json");
  const request = { method, path, authority, headers, body: Buffer.from(JSON.stringify(body)) };
  const answer = await callout.http(request, exchange);
  return { status: answer.status, body: objectIn(answer) };
}

/** Asks a service of a vendor, whose errors have a status. @throws CalloutError for any status but 2xx as well */
export async function askVendor(
  callout: Callout,
  request: ServiceRequest,
  exchange: RoutedExchange,
): Promise<JsonObject> {
  const { status, body } = await askService(callout, request, exchange);
  if (status < 200 || status > 299) throw new CalloutError(`the guard service answered with status ${status}`);
  return body;
}

function objectIn({ body, status }: CalloutAnswer): JsonObject {
  const object = parseObject(body);
  if (object === undefined) throw unusable(`no JSON object, status ${status}`);
  return object;
}

/** @param reason must not hold text of the service's answer, which may quote the prompt */
export function unusable(reason: string): CalloutError {
  return new CalloutError(`the answer of the guard service is unusable: ${reason}`);
}
