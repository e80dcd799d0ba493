/** Records the next request: opens `/debug/trace` and passes on its events until the stream ends. */
import { EventStreamParser, MAX_EVENTS, parseTraceEvent, type TraceEvent } from "../model/trace.ts";
import type { AdminClient } from "./admin-client.ts";

export interface RecordingOptions {
  /** CEL that chooses the request; empty for the next one. */
  readonly expression: string;
  readonly signal: AbortSignal;
  /** Called when the server waits for a request. */
  readonly onReady: () => void;
  readonly onEvent: (event: TraceEvent) => void;
}

/**
 * Resolves when the stream has ended.
 * @throws as AdminClient.fetch
 */
export async function recordRequest(client: AdminClient, options: RecordingOptions): Promise<void> {
  const { expression, signal, onReady, onEvent } = options;
  const query = expression === "" ? "" : `?${new URLSearchParams({ expression }).toString()}`;
  // EventSource would connect again at the end of each stream and could not send the token.
  const { body } = await client.fetch(`/debug/trace${query}`, signal);
  if (body === null) return;
  let events = 0;
  const parser = new EventStreamParser(
    (data) => {
      const event = parseTraceEvent(data);
      if (event !== undefined && ++events <= MAX_EVENTS) onEvent(event);
    },
    (comment) => {
      if (comment === "ready") onReady();
    },
  );
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  for (let chunk = await reader.read(); !chunk.done; chunk = await reader.read()) parser.push(chunk.value);
}
