/** Reads `/debug/trace`: the events that a reader of the data plane delivers, to the last one. */
import assert from "node:assert/strict";
import type { TraceEvent } from "../../../src/console/model/trace.ts";
import type { Proxy } from "../../../src/proxy/proxy.ts";

/** An event as it is sent: one without a place has no `scope`. */
export type SentEvent = Omit<TraceEvent, "scope"> & Partial<Pick<TraceEvent, "scope">>;

export interface TestWatch {
  /** Resolves with all events, when the request is over. */
  events(): Promise<readonly SentEvent[]>;
  close(): void;
}

export async function openWatch(
  proxy: Pick<Proxy, "watch">,
  { expression, showsSecrets = false }: { readonly expression?: string; readonly showsSecrets?: boolean } = {},
): Promise<TestWatch> {
  const opened = await proxy.watch({ expression, showsSecrets });
  assert.ok(opened.ok, "the watch opens");
  const { reader } = opened;
  return {
    async events() {
      const events: SentEvent[] = [];
      for (let lines = await reader.read(); lines !== undefined; lines = await reader.read())
        // The data plane printed them.
        events.push(...lines.map((line) => JSON.parse(line) as SentEvent));
      return events;
    },
    close: () => reader.close(),
  };
}

/** Returns the messages of one type. */
export function messagesOf(events: readonly SentEvent[], type: string): SentEvent["message"][] {
  return events.flatMap(({ message }) => (message.type === type ? [message] : []));
}
