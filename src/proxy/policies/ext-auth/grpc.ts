/**
 * External authorization over gRPC with the `envoy.service.auth.v3.Authorization` service, so that existing servers
 * work unchanged.
 */
import { create, type JsonObject, type JsonValue } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import {
  AttributeContextSchema,
  Authorization,
  CheckRequestSchema,
  type CheckResponse,
  type DeniedHttpResponse,
  type OkHttpResponse,
} from "../../../../generated/proto/envoy/service/auth/v3/external_auth_pb.ts";
import type { ExtAuthGrpc } from "../../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import type { Expression } from "../../../cel/expression.ts";
import { AttributeMap } from "../../../cel/values.ts";
import { HeaderList } from "../../../lib/header-list.ts";
import type { Callout } from "../../callouts/callout.ts";
import type { Exchange } from "../../exchange/exchange.ts";
import { jsonOf, toJson } from "../shared/expression-support.ts";
import type { CheckDeps, Verdict } from "./verdict.ts";
import { applyHeaderOptions, removeHeaders } from "../shared/header-options.ts";
import { removeParameters, setParameter } from "../shared/query-support.ts";
import { requestTarget } from "../shared/request-support.ts";

/** Metadata namespaces of token claims: the neutral name of our API, and the one that existing servers read. */
const JWT_NAMESPACES = ["ext.filters.http.jwt_authn", "envoy.filters.http.jwt_authn"];
const DENIED_STATUS = 403;

export type Ask = (exchange: Exchange, body: Buffer | undefined) => Promise<Verdict>;

/** @returns a check that throws CalloutError when the service cannot be asked */
export function compileGrpcCheck(
  { contextExtensions, requestMetadata }: ExtAuthGrpc,
  service: Callout,
  deps: CheckDeps,
): Ask {
  const metadataOf = compileMetadata(requestMetadata?.expressions, deps);
  return async (exchange, body) => {
    const attributes = create(AttributeContextSchema, {
      ...connectionOf(exchange),
      request: { time: timestampFromDate(exchange.startedAt), http: httpRequest(exchange, body) },
      contextExtensions,
      metadataContext: { filterMetadata: metadataOf(exchange) },
    });
    const request = create(CheckRequestSchema, { attributes });
    return verdictOf(await service.unary(Authorization.method.check, request, exchange));
  };
}

/** Describes both ends of the connection. The principal comes from a client certificate that the listener verified. */
function connectionOf(exchange: Exchange) {
  const client = membersOf(exchange, "source");
  const server = membersOf(exchange, "destination");
  const principal = client("spiffeId") ?? client("subject");
  const sni = server("hostname");
  return {
    source: {
      address: socketAddress(exchange.source.address, exchange.source.port),
      ...(typeof principal === "string" ? { principal } : {}),
    },
    destination: { address: socketAddress(String(server("address") ?? ""), Number(server("port") ?? 0)) },
    ...(typeof sni === "string" ? { tlsSession: { sni } } : {}),
  };
}

function membersOf(exchange: Exchange, root: string): (name: string) => unknown {
  const members = exchange.root(root);
  return (name) => (members instanceof AttributeMap ? members.get(name) : undefined);
}

function socketAddress(address: string, port: number) {
  const value = { address, portSpecifier: { case: "portValue", value: port } } as const;
  return { address: { case: "socketAddress", value } } as const;
}

function httpRequest(exchange: Exchange, body: Buffer | undefined) {
  const { method, target, host, scheme, version, requestHeaders } = exchange;
  const headers: Record<string, string> = {
    ":method": method,
    ":path": utf8(target),
    ":authority": utf8(host),
    ":scheme": scheme,
  };
  const { raw } = requestHeaders;
  for (let at = 0; at < raw.length; at += 2) {
    const name = (raw[at] as string).toLowerCase();
    const value = utf8(raw[at + 1] as string);
    const before = headers[name];
    headers[name] = before === undefined ? value : `${before}${name === "cookie" ? "; " : ", "}${value}`;
  }
  return {
    id: requestHeaders.get("x-request-id") ?? "",
    method,
    headers,
    path: utf8(target),
    host: utf8(host),
    scheme,
    size: BigInt(body?.length ?? declaredSize(exchange)),
    protocol: version,
    ...bodyFields(body),
  };
}

/** Header lists hold one character per byte; protobuf strings must be UTF-8. */
function utf8(latin1: string): string {
  return Buffer.from(latin1, "latin1").toString();
}

function bodyFields(body: Buffer | undefined): { body?: string; rawBody?: Uint8Array } {
  if (body === undefined) return {};
  const text = body.toString();
  // Bytes that are not valid UTF-8 would change as a string.
  return Buffer.from(text).equals(body) ? { body: text } : { rawBody: body };
}

function declaredSize({ requestHeaders, requestBody }: Exchange): number {
  if (requestBody === null) return 0;
  if (Buffer.isBuffer(requestBody)) return requestBody.length;
  const length = Number(requestHeaders.get("content-length") ?? "-1");
  return Number.isSafeInteger(length) ? length : -1;
}

function compileMetadata(
  expressions: Readonly<Record<string, string>> | undefined,
  deps: CheckDeps,
): (exchange: Exchange) => Record<string, JsonObject> {
  if (expressions === undefined) return tokenClaims;
  const compiled = Object.entries(expressions).map(([name, source]): [string, Expression] => [
    name,
    deps.expression(source, "request"),
  ]);
  return (exchange) => {
    const metadata: Record<string, JsonObject> = {};
    for (const [name, expression] of compiled) {
      const value = jsonOf(expression, exchange);
      if (isObject(value)) metadata[name] = value;
    }
    return metadata;
  };
}

function tokenClaims(exchange: Exchange): Record<string, JsonObject> {
  const token = exchange.root("jwt");
  if (token === undefined) return {};
  const claims = toJson(token);
  if (!isObject(claims)) return {};
  const { rawToken: _secret, ...payload } = claims;
  return Object.fromEntries(JWT_NAMESPACES.map((name) => [name, { jwt_payload: payload }]));
}

function isObject(value: JsonValue | undefined): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function verdictOf(response: CheckResponse): Verdict {
  const { status, httpResponse } = response;
  const ok = httpResponse.case === "okResponse" ? httpResponse.value : undefined;
  const struct = ok?.dynamicMetadata ?? response.dynamicMetadata;
  const metadata = struct === undefined ? undefined : new Map<string, unknown>(Object.entries(struct));
  // An absent status is the zero value of the message, which means OK.
  if ((status?.code ?? 0) === 0)
    return { allowed: true, edit: compileEdit(ok), responseHeaders: ok?.responseHeadersToAdd ?? [], metadata };
  const denied = httpResponse.case === "deniedResponse" ? httpResponse.value : undefined;
  return { allowed: false, reply: denied === undefined ? undefined : replyOf(denied), metadata };
}

function compileEdit(ok: OkHttpResponse | undefined): (exchange: Exchange) => void {
  if (ok === undefined) return () => undefined;
  const { headers, headersToRemove, queryParametersToSet, queryParametersToRemove } = ok;
  return (exchange) => {
    removeHeaders(headersToRemove, exchange.requestHeaders);
    applyHeaderOptions(headers, requestTarget(exchange));
    for (const { key, value } of queryParametersToSet) exchange.target = setParameter(exchange.target, key, value);
    exchange.target = removeParameters(exchange.target, new Set(queryParametersToRemove));
  };
}

function replyOf({ status, headers, body }: DeniedHttpResponse) {
  const list = new HeaderList();
  applyHeaderOptions(headers, { headers: list, setPseudo: () => undefined });
  const code = status?.code ?? DENIED_STATUS;
  return { status: code >= 200 && code <= 599 ? code : DENIED_STATUS, headers: list, body: Buffer.from(body) };
}
