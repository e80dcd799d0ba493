/** Reads `/debug/trace`: the events that a reader of the data plane delivers, to the last one. */
import assert from "node:assert/strict";
import type { Proxy } from "../../../src/proxy/proxy.ts";

export interface TraceEvent {
  readonly eventStart: number | null;
  readonly eventEnd: number;
  readonly severity: string;
  readonly scope?: readonly string[];
  readonly message: { readonly type: string } & Readonly<Record<string, unknown>>;
}

export interface TestWatch {
  /** Resolves with all events, when the request is over. */
  events(): Promise<readonly TraceEvent[]>;
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
      const events: TraceEvent[] = [];
      for (let lines = await reader.read(); lines !== undefined; lines = await reader.read())
        // The data plane printed them.
        events.push(...lines.map((line) => JSON.parse(line) as TraceEvent));
      return events;
    },
    close: () => reader.close(),
  };
}

/** Returns the messages of one type. */
export function messagesOf(events: readonly TraceEvent[], type: string): TraceEvent["message"][] {
  return events.flatMap(({ message }) => (message.type === type ? [message] : []));
}
