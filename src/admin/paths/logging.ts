/** `/logging`: shows and changes the log filter of the process. */
import { getQuery, type H3Event } from "h3";
import { parseLogFilter, printLogFilter, type LogFilter } from "../../lib/log.ts";
import { text } from "../http.ts";
import type { AdminPath, LoggingContext } from "./admin-path.ts";

const USAGE = "usage: ?level=<off|error|warn|info|debug|trace>[,<module>=<level>...] or ?reset";

export const logging: AdminPath<LoggingContext> = {
  help: "the log filter; POST ?level=info,proxy=debug changes it, ?reset returns to the first",
  get: showFilter,
  post: changeFilter,
};

/** Operators of other controllers of the Gateway API change levels with PUT. */
export const controllerLogging: AdminPath<LoggingContext> = {
  help: "the log filter; POST or PUT ?level=info,status=debug changes it, ?reset returns to the first",
  get: showFilter,
  post: changeFilter,
  put: changeFilter,
};

function showFilter(_event: H3Event, { filter }: LoggingContext): Response {
  return printFilter(filter);
}

function changeFilter(event: H3Event, { filter, initialFilter, onFilter }: LoggingContext): Response {
  const { level, reset } = getQuery(event);
  const next = level === undefined ? undefined : parseLogFilter(String(level));
  // An invalid level changes nothing, even together with ?reset.
  if ((level !== undefined && next === undefined) || (level === undefined && reset === undefined))
    return text(`${USAGE}\n`, 400);
  const chosen = next ?? initialFilter;
  filter.level = chosen.level;
  filter.modules = new Map(chosen.modules);
  onFilter();
  return printFilter(filter);
}

function printFilter(filter: LogFilter): Response {
  return text(`current log level is ${printLogFilter(filter)}\n`);
}
