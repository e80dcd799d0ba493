/**
 * Compiles the filters of an HTTPRoute or GRPCRoute into middlewares: header edits, CORS, redirect, URL rewrite and
 * mirrors. The router compiles them with the route; router/bind-rule.ts merges them with the policies.
 */
import { create } from "@bufbuild/protobuf";
import {
  HeaderChangeSchema,
  type Cors,
  type HeaderChange,
  type HttpFilter,
  type Mirror,
  type PathChange,
  type Redirect,
  type UrlRewrite,
} from "../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { HeaderList } from "../../lib/header-list.ts";
import { ConfigError } from "../../lib/errors.ts";
import { ProxyError } from "../exchange/errors.ts";
import type { Middleware } from "../policies/policy.ts";
import { hostOf } from "../../lib/network/request-target.ts";
import { hasDotSegment } from "../exchange/fields.ts";
import type { RoutedExchange } from "../exchange/exchange.ts";

export interface CompiledFilters {
  readonly requestHeaders: HeaderChange | undefined;
  readonly responseHeaders: HeaderChange | undefined;
  readonly cors: Cors | undefined;
  readonly redirect: boolean;
  readonly mirrors: readonly Mirror[];
  readonly middlewares: readonly Middleware<RoutedExchange>[];
}

/** @throws ConfigError for a filter that this version does not know */
export function compileFilters(filters: readonly HttpFilter[]): CompiledFilters {
  const requests: HeaderChange[] = [];
  const responses: HeaderChange[] = [];
  let cors: Cors | undefined;
  const mirrors: Mirror[] = [];
  const rewrites: Middleware<RoutedExchange>[] = [];
  const redirects: Middleware<RoutedExchange>[] = [];
  for (const { filter } of filters) {
    switch (filter.case) {
      case "requestHeaders":
        requests.push(filter.value);
        break;
      case "responseHeaders":
        responses.push(filter.value);
        break;
      case "cors":
        cors = filter.value;
        break;
      case "mirror":
        mirrors.push(filter.value);
        break;
      case "urlRewrite":
        rewrites.push(compileRewrite(filter.value));
        break;
      case "redirect":
        redirects.push(compileRedirect(filter.value));
        break;
      case undefined:
        throw new ConfigError("a filter of the route is unknown to this version");
    }
  }
  return {
    requestHeaders: joined(requests),
    responseHeaders: joined(responses),
    cors,
    redirect: redirects.length > 0,
    mirrors,
    middlewares: [...rewrites, ...redirects],
  };
}

function joined(changes: readonly HeaderChange[]): HeaderChange | undefined {
  if (changes.length < 2) return changes[0];
  return create(HeaderChangeSchema, {
    set: changes.flatMap(({ set }) => set),
    add: changes.flatMap(({ add }) => add),
    remove: changes.flatMap(({ remove }) => remove),
  });
}

function compileRewrite({ hostname, path }: UrlRewrite): Middleware<RoutedExchange> {
  return function urlRewrite(exchange, next) {
    if (hostname !== "") exchange.host = hostname;
    if (path !== undefined) {
      const target = changedTarget(exchange, path);
      // Joining two parts may create a dot segment that neither part contains.
      if (hasDotSegment(target))
        throw new ProxyError("request_invalid", { detail: "dot segment in a path that URLRewrite wrote" });
      exchange.target = target;
      if (path.change.case === "prefix") exchange.replacementPrefix = path.change.value;
    }
    return next();
  };
}

function compileRedirect({ scheme, hostname, port, path, status }: Redirect): Middleware<RoutedExchange> {
  return function redirect(exchange) {
    const newScheme = scheme === "" ? exchange.scheme : scheme;
    const host = hostname === "" ? hostOf(exchange.host) : hostname;
    const newPort = port ?? (scheme === "" ? portOf(exchange.host) : undefined);
    const shown = newPort === undefined || newPort === defaultPort(newScheme) ? "" : `:${newPort}`;
    const target = path === undefined ? exchange.target : changedTarget(exchange, path);
    const headers = new HeaderList(["location", `${newScheme}://${host}${shown}${target}`]);
    return { status: status === 0 ? 302 : status, headers, body: null, upstream: false };
  };
}

/** Replaces the path and keeps the query unless the replacement has one; the parts meet at exactly one slash. */
function changedTarget(exchange: RoutedExchange, { change }: PathChange): string {
  const { target } = exchange;
  const mark = target.indexOf("?");
  const path = mark < 0 ? target : target.slice(0, mark);
  const query = mark < 0 ? "" : target.slice(mark);
  if (change.case === undefined) return target;
  let changed = change.value;
  if (change.case === "prefix") {
    const rest = path.slice(exchange.matchedPrefix?.length ?? 0);
    const start = changed.endsWith("/") ? changed.slice(0, -1) : changed;
    changed = rest === "" || rest.startsWith("/") ? `${start}${rest}` : `${start}/${rest}`;
  }
  if (!changed.startsWith("/")) changed = `/${changed}`;
  return changed.includes("?") ? changed : `${changed}${query}`;
}

function portOf(authority: string): number | undefined {
  const port = /:([0-9]{1,5})$/.exec(authority)?.[1];
  return port === undefined ? undefined : Number(port);
}

function defaultPort(scheme: string): number {
  return scheme === "https" ? 443 : 80;
}
