/**
 * The roots `request` and `proxy` of expressions (docs/reference/expressions.md). Attributes are computed
 * when an expression reads them; attributes that become known later in a request are absent until then.
 */
import { HeaderView } from "../../cel/header-view.ts";
import { Duration } from "../../cel/values.ts";
import { pathOf } from "../../lib/network/request-target.ts";
import { Attributes, readers } from "../exchange/attributes.ts";
import type { Reply } from "../exchange/exchange.ts";
import type { HttpExchange } from "./http-exchange.ts";

const EMPTY = Buffer.alloc(0);

const REQUEST = readers<HttpExchange>({
  method: ({ method }) => method,
  uri: ({ scheme, host, target }) => `${scheme}://${host}${target}`,
  path: ({ target }) => pathOf(target),
  pathAndQuery: ({ target }) => target,
  host: ({ host }) => host,
  scheme: ({ scheme }) => scheme,
  version: ({ version }) => version,
  headers: ({ requestHeaders }) => new HeaderView(requestHeaders),
  // null when the body was not captured or is larger than the limit.
  body: ({ requestBody, requestWatch }) => wholeOf(requestBody) ?? requestWatch?.body ?? null,
  bodyPrefix: ({ requestBody, bodyPrefix, requestWatch }) =>
    wholeOf(requestBody) ?? bodyPrefix ?? requestWatch?.prefix ?? null,
  startTime: ({ startedAt }) => startedAt,
  endTime: ({ endedAtMs }) => (endedAtMs === undefined ? undefined : new Date(performance.timeOrigin + endedAtMs)),
});

export function requestRoot(exchange: HttpExchange): Attributes<HttpExchange> {
  return new Attributes(REQUEST, exchange);
}

function wholeOf(body: Reply["body"]): Buffer | null {
  if (body === null) return EMPTY;
  return Buffer.isBuffer(body) ? body : null;
}

const PROXY = readers<HttpExchange>({
  bind: ({ listener }) => listener.bind,
  gateway: ({ listener }) => ({ namespace: listener.namespace, name: listener.gateway }),
  listener: ({ listener }) => ({ name: listener.name }),
  route: ({ route }) => route,
  requestProcessingDuration: ({ startedAtMs, calledAtMs, endedAtMs }) => between(startedAtMs, calledAtMs ?? endedAtMs),
  upstreamDuration: ({ calledAtMs, answeredAtMs }) => between(calledAtMs, answeredAtMs),
  responseProcessingDuration: ({ answeredAtMs, endedAtMs }) => between(answeredAtMs, endedAtMs),
});

export function proxyRoot(exchange: HttpExchange): Attributes<HttpExchange> {
  return new Attributes(PROXY, exchange);
}

function between(startMs: number | undefined, endMs: number | undefined): Duration | undefined {
  return startMs === undefined || endMs === undefined ? undefined : Duration.ofMilliseconds(endMs - startMs);
}
