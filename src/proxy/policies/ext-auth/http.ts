/**
 * External authorization over HTTP: sends a request of the same method to the service; a 2xx response lets the client's
 * request pass.
 */
import type { ExtAuthHttp } from "../../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { bodyOf } from "../../../cel/compile/compile-expression.ts";
import { CelError } from "../../../cel/errors.ts";
import type { Expression } from "../../../cel/expression.ts";
import { HeaderView } from "../../../cel/header-view.ts";
import { HeaderList } from "../../../lib/header-list.ts";
import type { Callout, CalloutAnswer, CalloutRequest } from "../../callouts/callout.ts";
import { ProxyError } from "../../exchange/errors.ts";
import type { Exchange } from "../../exchange/exchange.ts";
import { isOriginForm } from "../../exchange/fields.ts";
import { fieldValueOf, valueOf } from "../shared/expression-support.ts";
import type { Ask } from "./grpc.ts";
import type { CheckDeps, Verdict } from "./verdict.ts";
import { editableName } from "../shared/header-options.ts";

interface Compiled {
  readonly service: Callout;
  readonly path: Expression | undefined;
  readonly redirect: Expression | undefined;
  readonly body: Expression | undefined;
  readonly allowedRequest: readonly string[];
  readonly added: readonly { readonly name: string; readonly expression: Expression }[];
  readonly allowedResponse: readonly string[];
  readonly metadata: readonly (readonly [string, Expression])[];
}

/** @returns a check that throws CalloutError when the service cannot be asked, ProxyError when an expression fails */
export function compileHttpCheck(spec: ExtAuthHttp, service: Callout, deps: CheckDeps): Ask {
  const optional = (source: string): Expression | undefined =>
    source === "" ? undefined : deps.expression(source, "request");
  const compiled: Compiled = {
    service,
    path: optional(spec.path),
    redirect: optional(spec.redirect),
    body: optional(spec.body),
    allowedRequest: spec.allowedRequestHeaders.map((name) => name.toLowerCase()),
    added: spec.addRequestHeaders.map(({ name, expression }) => ({
      name: name.toLowerCase(),
      expression: deps.expression(expression, "request"),
    })),
    allowedResponse: spec.allowedResponseHeaders.map((name) => name.toLowerCase()),
    metadata: Object.entries(spec.responseMetadata).map(([name, source]) => [
      name,
      deps.expression(source, "response"),
    ]),
  };
  return async (exchange, body) => {
    const answer = await service.http(requestOf(compiled, exchange, body), exchange);
    return verdictOf(compiled, exchange, answer);
  };
}

function requestOf(compiled: Compiled, exchange: Exchange, forwarded: Buffer | undefined): CalloutRequest {
  const headers = new HeaderList();
  let { method } = exchange;
  let path = pathOf(compiled, exchange);
  let authority: string | undefined;
  const place = (name: string, value: string): void => {
    if (name === ":authority" || name === "host") authority = value;
    else if (name === ":path" && isOriginForm(value)) path = value;
    else if (name === ":method") method = value;
    else if (editableName(name) !== undefined) headers.add(name, value);
  };
  for (const name of compiled.allowedRequest) for (const value of valuesOf(exchange, name)) place(name, value);
  if (forwarded !== undefined) headers.set("x-ext-auth-partial-body", "false");
  for (const { name, expression } of compiled.added) {
    headers.remove(name);
    const value = fieldValueOf(expression, exchange);
    if (value !== undefined) place(name, value);
  }
  const body = compiled.body === undefined ? forwarded : computed(compiled.body, exchange);
  return { method, path, authority, headers, body: body ?? null };
}

/** @throws ProxyError when the expression fails: a check of another path than the intended one decides nothing */
function pathOf({ path, service }: Compiled, exchange: Exchange): string {
  if (path === undefined) return service.path === "" ? exchange.target : service.path;
  const value = valueOf(path, exchange);
  if (typeof value !== "string" || !isOriginForm(value)) throw failed("path", path);
  return value;
}

function valuesOf(exchange: Exchange, name: string): readonly string[] {
  switch (name) {
    case ":authority":
    case "host":
      return [exchange.host];
    case ":method":
      return [exchange.method];
    // The check uses the path and scheme of the service.
    case ":path":
    case ":scheme":
      return [];
    default:
      return exchange.requestHeaders.getAll(name);
  }
}

function computed(expression: Expression, exchange: Exchange): Buffer {
  try {
    return bodyOf(expression.evaluate(exchange));
  } catch (error) {
    if (error instanceof CelError) throw failed("body", expression);
    throw error;
  }
}

function failed(field: string, { source }: Expression): ProxyError {
  return new ProxyError("ext_auth_failed", { detail: `${field} cannot be computed: ${source}` });
}

function verdictOf(compiled: Compiled, exchange: Exchange, answer: CalloutAnswer): Verdict {
  const { status, headers } = answer;
  if (status >= 200 && status <= 299) return allowed(compiled, exchange, answer);
  const { redirect } = compiled;
  if (redirect === undefined || (status !== 401 && status !== 403))
    return { allowed: false, reply: { status, headers, body: answer.body }, metadata: undefined };
  const location = fieldValueOf(redirect, exchange);
  if (location === undefined || location === "") throw failed("redirect", redirect);
  const reply = { status: 302, headers: new HeaderList(["location", location]), body: Buffer.alloc(0) };
  return { allowed: false, reply, metadata: undefined };
}

function allowed({ allowedResponse, metadata }: Compiled, exchange: Exchange, answer: CalloutAnswer): Verdict {
  const copied = allowedResponse.flatMap((name) => {
    const values = editableName(name) === undefined ? [] : answer.headers.getAll(name);
    return values.length === 0 ? [] : [{ name, values }];
  });
  return {
    allowed: true,
    edit({ requestHeaders }) {
      // The client's own fields of these names were removed before (removeForgeable).
      for (const { name, values } of copied) for (const value of values) requestHeaders.add(name, value);
    },
    responseHeaders: [],
    metadata: metadata.length === 0 ? undefined : computeMetadata(metadata, exchange, answer),
  };
}

function computeMetadata(
  metadata: Compiled["metadata"],
  exchange: Exchange,
  { status, headers, body }: CalloutAnswer,
): Map<string, unknown> {
  const response = { code: status, headers: new HeaderView(headers), body, bodyPrefix: body };
  const scope = { root: (name: string) => (name === "response" ? response : exchange.root(name)) };
  const values = new Map<string, unknown>();
  for (const [name, expression] of metadata) {
    const value = valueOf(expression, scope);
    if (value !== undefined) values.set(name, value);
  }
  return values;
}
