/** Stop sequences, which may be one text or a list. */
import type { Json } from "../../shared/json.ts";
import { readText, requireText } from "../../shared/request-fields.ts";

/** @returns undefined when there is none; empty sequences are dropped, because providers refuse them */
export function readStop(stop: Json | undefined, path: string): readonly string[] | undefined {
  if (stop === undefined || stop === null) return undefined;
  const texts = Array.isArray(stop)
    ? stop.map((text, at) => requireText(text, `${path}[${at}]`))
    : [readText(stop, path) ?? ""];
  const sequences = texts.filter((text) => text !== "");
  return sequences.length === 0 ? undefined : sequences;
}
