/** Reads the events of `/debug/trace` from its stream, or from a file of recorded lines. `gwproxy trace` uses it. */
import { FatalError } from "../../lib/errors.ts";
import { isRecord } from "../../lib/is-record.ts";

export interface TraceEvent {
  readonly eventStart: number | null;
  readonly eventEnd: number;
  readonly severity: string;
  readonly scope?: readonly string[];
  readonly message: { readonly type: string } & Readonly<Record<string, unknown>>;
}

/** Yields "ready" when the data plane waits, then the events as lines of JSON. */
export async function* readStream(
  stream: ReadableStream<Uint8Array>,
): AsyncGenerator<{ ready: true } | { line: string }> {
  const decoder = new TextDecoder();
  let rest = "";
  for await (const chunk of stream) {
    rest += decoder.decode(chunk, { stream: true });
    const parts = rest.split("\n\n");
    rest = parts.pop() ?? "";
    for (const part of parts) {
      if (part === ": ready") yield { ready: true };
      else if (part.startsWith("data: ")) yield { line: part.slice("data: ".length) };
    }
  }
}

/** @throws FatalError for a line that is no event, such as the last one of a file that was cut off */
export function parseEvent(line: string, at: string): TraceEvent {
  try {
    const value: unknown = JSON.parse(line);
    // Everything that is printed of an event is checked where it is printed.
    if (isRecord(value) && isRecord(value["message"]) && typeof value["message"]["type"] === "string")
      return value as unknown as TraceEvent;
  } catch {
    // Said below, as for JSON of another shape.
  }
  throw new FatalError(`${at} is no event of a trace, or it is cut off; record it with gwproxy trace --raw`);
}
