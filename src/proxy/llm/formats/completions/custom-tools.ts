/**
 * Custom tools of a chat completions request, whose input is text. Providers of other formats know them as functions
 * with one text (conversation/free-text.ts); the printers of answers find with this which calls are theirs.
 */
import { listOf, objectOf, stringOf, type JsonObject } from "../../shared/json.ts";

/** Returns the names of the custom tools of a request. */
export function customToolNames(request: JsonObject): ReadonlySet<string> {
  const names = listOf(request["tools"]).flatMap((item) => {
    const tool = objectOf(item);
    const name = tool?.["type"] === "custom" ? stringOf(objectOf(tool["custom"])?.["name"]) : undefined;
    return name === undefined ? [] : [name];
  });
  return names.length === 0 ? NONE : new Set(names);
}

const NONE: ReadonlySet<string> = new Set();
