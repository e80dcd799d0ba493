/** Captures the access log of a gateway in this process, line by line. */
import { type AccessLog, createAccessLog, type LineLevel } from "../../../src/telemetry/access-log.ts";
import type { LogFormat } from "../../../src/telemetry/log-lines.ts";
import type { ProofContext } from "../proofs/prove.ts";

export interface KeptLines {
  readonly accessLog: AccessLog;
  /** Returns the next line; resolves when it is written. */
  next(): Promise<string>;
  /** Returns the next line in the form json, parsed. */
  nextFields(): Promise<Record<string, unknown>>;
}

export function keepLines(
  context: Pick<ProofContext, "after">,
  options: { readonly format?: LogFormat; readonly level?: LineLevel } = {},
): KeptLines {
  const { format = "json", level = "info" } = options;
  const lines: string[] = [];
  let written = Promise.withResolvers<void>();
  const accessLog = createAccessLog({
    format,
    level: () => level,
    delayMs: 0,
    write(text) {
      lines.push(...text.trimEnd().split("\n"));
      written.resolve();
      written = Promise.withResolvers();
      return true;
    },
  });
  context.after(() => accessLog.close());
  const next = async (): Promise<string> => {
    for (;;) {
      const { promise } = written;
      const line = lines.shift();
      if (line !== undefined) return line;
      await promise;
    }
  };
  return { accessLog, next, nextFields: async () => JSON.parse(await next()) as Record<string, unknown> };
}
