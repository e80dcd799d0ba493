/** The worker's side of `/debug/trace`: the watches that the main thread has opened here, by its numbers. */
import type { OpenedWatch } from "../debug-trace/debug-traces.ts";
import type { TraceReader, WatchOptions } from "../debug-trace/watch.ts";
import type { Handlers } from "./channel.ts";
import type { WorkerProtocol } from "./protocol.ts";

type WatchHandlers = Pick<Handlers<WorkerProtocol>, "watchOpen" | "watchRead" | "watchClose">;

export function watchHandlers(open: (options: WatchOptions) => Promise<OpenedWatch>): WatchHandlers {
  const readers = new Map<number, TraceReader>();
  return {
    async watchOpen({ watch, ...options }) {
      const opened = await open(options);
      if (!opened.ok) return opened;
      readers.set(watch, opened.reader);
      return undefined;
    },
    watchRead: (watch) => readers.get(watch)?.read(),
    watchClose(watch) {
      readers.get(watch)?.close();
      readers.delete(watch);
    },
  };
}
