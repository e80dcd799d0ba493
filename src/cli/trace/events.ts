/**
 * Reads the events of `/debug/trace` from its stream, or from a file of recorded lines. `gwproxy trace` uses it. The form
 * of an event is known in src/console/model/trace.ts alone, so that each opens what the other has recorded.
 */
import { EventStreamParser, parseTraceEvent, type TraceEvent } from "../../console/model/trace.ts";
import { FatalError } from "../../lib/errors.ts";

type StreamPart = { readonly ready: true } | { readonly line: string };

/** Yields "ready" when the data plane waits, then the events as lines of JSON. */
export async function* readStream(stream: ReadableStream<Uint8Array>): AsyncGenerator<StreamPart> {
  const parts: StreamPart[] = [];
  const parser = new EventStreamParser(
    (line) => parts.push({ line }),
    (comment) => {
      if (comment === "ready") parts.push({ ready: true });
    },
  );
  const decoder = new TextDecoder();
  for await (const chunk of stream) {
    parser.push(decoder.decode(chunk, { stream: true }));
    yield* parts.splice(0);
  }
}

/** @throws FatalError for a line that is no event, such as the last one of a file that was cut off */
export function parseEvent(line: string, at: string): TraceEvent {
  const event = parseTraceEvent(line);
  if (event === undefined)
    throw new FatalError(`${at} is no event of a trace, or it is cut off; record it with gwproxy trace --raw`);
  return event;
}
