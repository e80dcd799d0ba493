/**
 * The interface of a path of the admin server. A path receives everything that it shows or does through the context.
 */
import type { H3Event } from "h3";
import type { LogFilter, Logger } from "../../lib/log.ts";

export interface AdminContext {
  /** Returns the content of /config_dump; secrets are masked already. */
  readonly state: () => Promise<unknown>;
  /** Changed in place by /logging. */
  readonly filter: LogFilter;
  /** The filter that the process started with. */
  readonly initialFilter: LogFilter;
  /** Called after each change of the filter. */
  readonly onFilter: () => void;
  readonly log: Logger;
  /** Starts a graceful shutdown; resolves when it is over. */
  readonly drain: () => Promise<void>;
  /** Ends the process; called after the drain. */
  readonly quit: () => void;
}

type AdminHandler = (event: H3Event, context: AdminContext) => Response | Promise<Response>;

export interface AdminPath {
  /** One sentence for the page of the server and for docs/reference/admin.md. */
  readonly help: string;
  readonly get?: AdminHandler;
  readonly post?: AdminHandler;
}
