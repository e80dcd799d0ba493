/**
 * Splits a stream of newline-delimited JSON into lines; watch.ts uses it. A stream that ends inside a line is an error,
 * not an event.
 */
import type { Readable } from "node:stream";
import { SourceError } from "../../lib/errors.ts";

/** Kubernetes objects stay under 2 MiB, so a longer line is not an event. */
const MAX_LINE_CHARACTERS = 16 * 1024 * 1024;

/** @throws SourceError when the stream breaks off inside a line or a line exceeds the limit */
export async function* readLines(stream: Readable): AsyncGenerator<string, void, void> {
  stream.setEncoding("utf8");
  let parts: string[] = [];
  let length = 0;
  for await (const chunk of stream) {
    const text = chunk as string; // setEncoding makes every chunk a string
    let from = 0;
    for (let at = text.indexOf("\n"); at >= 0; at = text.indexOf("\n", from)) {
      parts.push(text.slice(from, at));
      const line = parts.join("");
      parts = [];
      length = 0;
      from = at + 1;
      if (line.trim() !== "") yield line;
    }
    if (from === text.length) continue;
    parts.push(text.slice(from));
    length += text.length - from;
    if (length > MAX_LINE_CHARACTERS) throw new SourceError("an event of the watch is longer than any object may be");
  }
  if (parts.join("").trim() !== "") throw new SourceError("the watch broke off in the middle of an event");
}
