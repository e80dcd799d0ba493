/**
 * The names and values of the endpoint picker protocol of the Gateway API inference extension (version 1.0.0 of its
 * proposal 004): which endpoints a picker may choose, which it has chosen, and which one has served. `picker.ts` uses it.
 */
import type { JsonObject } from "@bufbuild/protobuf";

/** The field in which the picker names the chosen endpoints; the same name is used in dynamic metadata. */
export const DESTINATION = "x-gateway-destination-endpoint";

/** Longest list that is read. A picker names a few endpoints, in the order in which they are tried. */
const MAX_DESTINATIONS = 16;
const MAX_LENGTH = 2_048;

/** Returns the metadata that restricts the choice. @param names "address:port" of the endpoints that are ready */
export function subsetHint(names: readonly string[]): Record<string, JsonObject> {
  return { "envoy.lb.subset_hint": { "x-gateway-destination-endpoint-subset": [...names] } };
}

/** Returns the metadata that reports which endpoint has served a response. @param name "address:port" */
export function servedBy(name: string): Record<string, JsonObject> {
  return { "envoy.lb": { "x-gateway-destination-endpoint-served": name } };
}

/** Reads the chosen endpoints of dynamic metadata. @returns undefined when it names none */
export function destinationOf(metadata: JsonObject): string | undefined {
  const group = metadata["envoy.lb"];
  if (typeof group !== "object" || group === null || Array.isArray(group)) return undefined;
  const value = group[DESTINATION];
  return typeof value === "string" ? value : undefined;
}

/** Splits "address:port,address:port"; a longer list than a picker would write is cut. */
export function parseDestinations(value: string): string[] {
  const names = value.slice(0, MAX_LENGTH).split(",", MAX_DESTINATIONS);
  return [...new Set(names.map((name) => name.trim()).filter((name) => name !== ""))];
}
