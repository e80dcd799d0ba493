/**
 * Translates one GRPCRoute (GEP-1016) into one resource; `../graph.ts` uses it. The path of a gRPC request is
 * "/service/method", so method matches become path matches. Everything else is common to all routes (http-rules.ts).
 */
import { create } from "@bufbuild/protobuf";
import type {
  GRPCRoute,
  GRPCRouteMatch,
  GRPCRouteMethod,
  GRPCRouteRule,
} from "../../../generated/types/gateway-api/grpcroute.ts";
import { HttpMatchSchema, type HttpMatch, type HttpRule } from "../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import type { Read } from "../../lib/collections/graph.ts";
import type { ParentView } from "../shared/views.ts";
import { isRegex, translateHeaders, type Report } from "./matches.ts";
import { translateRoute, translateRule, type RouteContext, type RuleContext } from "./http-rules.ts";
import type { TranslatedRoute } from "./route.ts";

export function translateGrpcRoute(
  route: GRPCRoute,
  parents: readonly ParentView[],
  context: RouteContext,
  read: Read,
): TranslatedRoute {
  return translateRoute(route, parents, { ...context, kind: "GRPCRoute", read }, translateGrpcRule);
}

function translateGrpcRule(rule: GRPCRouteRule, context: RuleContext): HttpRule {
  return translateRule(rule, context, (report) => translateGrpcMatches(rule.matches, report));
}

/** Returns at least one match, since a rule without matches takes every method. */
function translateGrpcMatches(matches: readonly GRPCRouteMatch[] | undefined, report: Report): HttpMatch[] {
  const wanted = matches === undefined || matches.length === 0 ? [{}] : matches;
  return wanted.map((match: GRPCRouteMatch, at) => {
    const reportHere: Report = (path, message) => report(`matches[${at}].${path}`, message);
    return create(HttpMatchSchema, {
      path: translateMethod(match.method, reportHere),
      headers: translateHeaders(match.headers, reportHere),
    });
  });
}

const ANY = "[^/]+";

/** Translates a method match into a path match; an absent service or method matches any. */
function translateMethod(wanted: GRPCRouteMethod | undefined, report: Report): NonNullable<HttpMatch["path"]> {
  const { service = "", method = "", type = "Exact" } = wanted ?? {};
  if (service === "" && method === "") return { case: "prefix", value: "/" };
  if (type === "RegularExpression") {
    const sound = [isSound(service, "method.service", report), isSound(method, "method.method", report)];
    const value = `/${grouped(service)}/${grouped(method)}`;
    // Each part may be within the limits of a pattern while both together exceed them.
    if (sound.includes(false) || !isRegex(value, "method", report)) return { case: "prefix", value: "/" };
    return { case: "regex", value };
  }
  if (method === "") return { case: "prefix", value: `/${service}` };
  if (service === "") return { case: "regex", value: `/${ANY}/${escaped(method)}` };
  return { case: "exact", value: `/${service}/${method}` };
}

function isSound(text: string, path: string, report: Report): boolean {
  return text === "" || isRegex(text, path, report);
}

function grouped(pattern: string): string {
  return pattern === "" ? ANY : `(?:${pattern})`;
}

function escaped(text: string): string {
  return text.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&");
}
