/** The table of admin paths. The server routes by it, and its page and docs/reference/admin.md are made from it. */
import type { AdminPath } from "./admin-path.ts";
import { configDump } from "./config-dump.ts";
import { consoleData, consoleScript, consoleStyle } from "./console.ts";
import { debugTrace } from "./debug-trace.ts";
import { cpuProfile, heapProfile } from "./pprof.ts";
import { tasks } from "./tasks.ts";
import { explain } from "./explain.ts";
import { logging } from "./logging.ts";
import { memory } from "./memory.ts";
import { quit } from "./quit.ts";

export const ADMIN_PATHS: Readonly<Record<string, AdminPath>> = {
  "/config_dump": configDump,
  "/console/app.css": consoleStyle,
  "/console/app.js": consoleScript,
  "/console/data": consoleData,
  "/debug/pprof/heap": heapProfile,
  "/debug/pprof/profile": cpuProfile,
  "/debug/tasks": tasks,
  "/debug/trace": debugTrace,
  "/explain": explain,
  "/logging": logging,
  "/memory": memory,
  "/quitquitquit": quit,
};

/** Returns the methods of a path in the form of the Allow header: "GET, POST". */
export function methodsOf({ get, post }: AdminPath): string {
  return [...(get === undefined ? [] : ["GET"]), ...(post === undefined ? [] : ["POST"])].join(", ");
}
