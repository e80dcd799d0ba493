/**
 * Translates the filters of a route rule or backendRef. `http-rules.ts` uses it. An unsupported filter is reported, and
 * its rule or its share of the traffic answers 500: the Gateway API forbids to skip a filter silently.
 */
import { create } from "@bufbuild/protobuf";
import type {
  HTTPMirrorBackendRef,
  HTTPRequestRedirectFilter,
  HTTPRouteFilter,
  HTTPRouteRequestMirror,
  HTTPPathModifier,
} from "../../../generated/types/gateway-api/httproute.ts";
import {
  HttpFilterSchema,
  MirrorSchema,
  PathChangeSchema,
  type HttpFilter,
  type PathChange,
} from "../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { Reason } from "../../api/conditions.ts";
import type { ConditionError } from "../shared/views.ts";
import { translateCors } from "../policies/cors.ts";
import { translateHeaderChange } from "../policies/header-modifiers.ts";

export interface TranslatedFilters {
  readonly filters: HttpFilter[];
  readonly errors: readonly FilterError[];
}

interface FilterError extends ConditionError {
  readonly path: string;
  /** The filter is left out and traffic continues: a mirror without a destination changes nothing for clients. */
  readonly harmless: boolean;
}

export interface FilterPlace {
  /** A backendRef accepts only filters that concern that backend. */
  readonly place: "rule" | "backendRef";
  /** Returns the key of the Backend that a mirror names, or why there is none. */
  readonly resolve: (ref: HTTPMirrorBackendRef) => string | ConditionError;
}

/** Filters that act before a backend is chosen. */
const RULE_ONLY: ReadonlySet<string> = new Set(["RequestRedirect", "URLRewrite", "CORS"]);

export function translateFilters(
  filters: readonly HTTPRouteFilter[] | undefined,
  { place, resolve }: FilterPlace,
): TranslatedFilters {
  const done: HttpFilter[] = [];
  const errors: FilterError[] = [];
  (filters ?? []).forEach((filter, at) => {
    const result = translateFilter(filter, resolve);
    const misplaced = place === "backendRef" && RULE_ONLY.has(filter.type);
    if (misplaced)
      errors.push({
        path: `filters[${at}]`,
        harmless: false,
        reason: Reason.UnsupportedValue,
        message: `filter ${filter.type} is served on rules, not on backendRefs`,
      });
    else if ("reason" in result) errors.push(errorAt(at, filter, result));
    else done.push(create(HttpFilterSchema, { filter: result }));
  });
  const types = done.map(({ filter }) => filter.case);
  if (types.includes("redirect") && types.includes("urlRewrite"))
    errors.push({
      path: "filters",
      harmless: false,
      reason: Reason.IncompatibleFilters,
      message: "RequestRedirect and URLRewrite cannot be in one rule",
    });
  return { filters: done, errors };
}

type Filter = Exclude<HttpFilter["filter"], { case: undefined }>;

function errorAt(at: number, { type }: HTTPRouteFilter, error: ConditionError): FilterError {
  const isMirror = type === "RequestMirror";
  const path = isMirror ? `filters[${at}].requestMirror.backendRef` : `filters[${at}]`;
  return { path, harmless: isMirror, ...error };
}

function translateFilter(filter: HTTPRouteFilter, resolve: FilterPlace["resolve"]): Filter | ConditionError {
  switch (filter.type) {
    case "RequestHeaderModifier":
      return { case: "requestHeaders", value: translateHeaderChange(filter.requestHeaderModifier) };
    case "ResponseHeaderModifier":
      return { case: "responseHeaders", value: translateHeaderChange(filter.responseHeaderModifier) };
    case "RequestRedirect":
      return redirect(filter.requestRedirect ?? {});
    case "URLRewrite":
      return {
        case: "urlRewrite",
        value: {
          $typeName: "gwproxy.config.v1.UrlRewrite",
          hostname: filter.urlRewrite?.hostname ?? "",
          ...pathChange(filter.urlRewrite?.path),
        },
      };
    case "CORS":
      return { case: "cors", value: translateCors(filter.cors ?? {}) };
    case "RequestMirror":
      return mirror(filter.requestMirror, resolve);
    case "ExtensionRef":
      return {
        reason: Reason.IncompatibleFilters,
        message: `filter ExtensionRef to ${filter.extensionRef?.kind ?? "nothing"} is not known`,
      };
    default:
      // A newer Gateway API can deliver filter types that this version was not generated from.
      return { reason: Reason.IncompatibleFilters, message: `filter ${String(filter["type"])} is not known` };
  }
}

function mirror(wanted: HTTPRouteRequestMirror | undefined, resolve: FilterPlace["resolve"]): Filter | ConditionError {
  if (wanted === undefined) return { reason: Reason.UnsupportedValue, message: "requestMirror is missing" };
  const backend = resolve(wanted.backendRef);
  if (typeof backend !== "string") return backend;
  const { percent = 100, fraction = { numerator: percent } } = wanted;
  const { numerator, denominator = 100 } = fraction;
  return { case: "mirror", value: create(MirrorSchema, { backend, numerator, denominator }) };
}

function redirect({ scheme, hostname, port, path, statusCode }: HTTPRequestRedirectFilter): Filter {
  return {
    case: "redirect",
    value: {
      $typeName: "gwproxy.config.v1.Redirect",
      scheme: scheme ?? "",
      hostname: hostname ?? "",
      ...(port === undefined ? {} : { port }),
      ...pathChange(path),
      status: statusCode ?? 302,
    },
  };
}

function pathChange(path: HTTPPathModifier | undefined): { path?: PathChange } {
  if (path === undefined) return {};
  const change =
    path.type === "ReplaceFullPath"
      ? ({ case: "full", value: path.replaceFullPath ?? "/" } as const)
      : ({ case: "prefix", value: path.replacePrefixMatch ?? "/" } as const);
  return { path: create(PathChangeSchema, { change }) };
}
