/** `routes` of an `ai` block: tells the format of a request by the end of its path. */
import { RouteType } from "../../../../generated/proto/gwproxy/config/v1/ir_pb.ts";

/** @param path without the query */
export type FindRouteType = (path: string) => RouteType;

const ANY = "*";

/** The longest suffix wins, "*" comes last, and a path that no suffix ends is of Completions. */
export function compileRoutes(routes: Readonly<Record<string, RouteType>>): FindRouteType {
  const { [ANY]: otherwise = RouteType.COMPLETIONS, ...named } = routes;
  const suffixes = Object.entries(named).sort(([a], [b]) => b.length - a.length || (a < b ? -1 : 1));
  return (path) => suffixes.find(([suffix]) => path.endsWith(suffix))?.[1] ?? otherwise;
}
