/** `/logging`: shows and changes the log filter of the process. */
import { getQuery } from "h3";
import { parseLogFilter, printLogFilter, type LogFilter } from "../../lib/log.ts";
import { text } from "../http.ts";
import type { AdminPath, LoggingContext } from "./admin-path.ts";

const USAGE = "usage: ?level=<off|error|warn|info|debug|trace>[,<module>=<level>...] or ?reset";

export const logging: AdminPath<LoggingContext> = {
  help: "the log filter; POST ?level=info,proxy=debug changes it, ?reset returns to the first",
  get: (_event, { filter }) => printFilter(filter),
  post(event, { filter, initialFilter, onFilter }) {
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
  },
};

function printFilter(filter: LogFilter): Response {
  return text(`current log level is ${printLogFilter(filter)}\n`);
}
