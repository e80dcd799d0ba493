/** `gwproxy log`: the log levels of all pods of a data plane or controller, shown and changed. */
import type { Terminal } from "../../lib/terminal.ts";
import { printStructured, type StructuredForm } from "../output.ts";
import { withAdmins, type PodOptions } from "./admin-client.ts";
import { printTable } from "./table.ts";

export interface LogOptions extends PodOptions {
  readonly output: "text" | StructuredForm;
  readonly level?: string | undefined;
  readonly reset?: boolean | undefined;
}

export async function showLog(resource: string | undefined, options: LogOptions, terminal: Terminal): Promise<void> {
  const { level, reset } = options;
  const query = new URLSearchParams({
    ...(level === undefined ? {} : { level }),
    ...(reset === true ? { reset: "1" } : {}),
  });
  const rows = await withAdmins(resource, options, "all", async (client) => {
    const answer = query.size === 0 ? await client.get("/logging") : await client.post(`/logging?${query}`);
    return { pod: client.name, level: answer.trim().replace(/^current log level is /, "") };
  });
  if (options.output !== "text") return terminal.out(printStructured(rows, options.output));
  terminal.out(printTable([["POD", "LEVEL"], ...rows.map((row) => [row.pod, row.level])]));
}
