/**
 * The tables of admin paths, one for each kind of process. The servers route by them, and their pages and
 * docs/reference/admin.md are made from them.
 */
import type { AdminContext, AdminPath, ControllerAdminContext } from "./admin-path.ts";
import { configDump, snapshotState } from "./config-dump.ts";
import { consoleData, consoleScript, consoleStyle } from "./console.ts";
import { debugTrace } from "./debug-trace.ts";
import { cpuProfile, heapProfile } from "./pprof.ts";
import { tasks } from "./tasks.ts";
import { explain } from "./explain.ts";
import { controllerLogging, logging } from "./logging.ts";
import { memory } from "./memory.ts";
import { quit } from "./quit.ts";
import { version } from "./version.ts";

export type AdminPaths<Context> = Readonly<Record<string, AdminPath<Context>>>;

export const ADMIN_PATHS: AdminPaths<AdminContext> = {
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

export const CONTROLLER_ADMIN_PATHS: AdminPaths<ControllerAdminContext> = {
  "/config_dump": {
    ...configDump,
    help: "what is served to each Gateway, and how far its data planes are, as JSON; ?section=NAME: one key of it alone",
  },
  "/debug/pprof/heap": heapProfile,
  "/debug/pprof/profile": cpuProfile,
  "/debug/tasks": { ...tasks, help: "the streams of connected data planes, as JSON" },
  "/logging": controllerLogging,
  "/memory": memory,
  "/snapshots/state": snapshotState,
  "/version": version,
};

/** Returns the methods of a path in the form of the Allow header: "GET, POST". */
export function methodsOf(path: Pick<AdminPath<never>, "get" | "post" | "put">): string {
  return (["get", "post", "put"] as const)
    .filter((method) => path[method] !== undefined)
    .map((method) => method.toUpperCase())
    .join(", ");
}
