/**
 * The interface of a path of the admin server. A path receives everything that it shows or does through the context.
 */
import type { H3Event } from "h3";
import type { LogFilter, Logger } from "../../lib/log.ts";
import type { ProfileRequest, ThreadProfile } from "../../lib/profiling/capture.ts";

/** What every process can profile. */
export interface ProfileContext {
  /** Profiles all threads. The signal ends it early, when the client has gone away. */
  readonly profile: (request: ProfileRequest, signal: AbortSignal) => Promise<readonly ThreadProfile[]>;
}

/** What the log filter is changed through. */
export interface LoggingContext {
  /** Changed in place by /logging. */
  readonly filter: LogFilter;
  /** The filter that the process started with. */
  readonly initialFilter: LogFilter;
  /** Called after each change of the filter. */
  readonly onFilter: () => void;
}

/** What /config_dump and /debug/tasks show. */
export interface StateContext {
  /** Returns the content of /config_dump; secrets are masked already. */
  readonly state: () => Promise<object>;
  /** Returns the connections and requests in progress. */
  readonly tasks: () => Promise<TaskList>;
}

/** What a controller shows. */
export interface ControllerAdminContext extends ProfileContext, LoggingContext, StateContext {}

/** What a data plane shows. */
export interface AdminContext extends ProfileContext, LoggingContext, StateContext {
  /** Returns the routes of a name ("namespace/name") with the policies of their rules; empty when there is none. */
  readonly explain: (name: string) => Promise<readonly ExplainedRoute[]>;
  /** Returns the ports of a Gateway ("namespace/name") with the settings of their connections; empty when there is none. */
  readonly explainGateway: (name: string) => Promise<readonly object[]>;
  /** Returns the content of /console/data. */
  readonly console: (query: ConsoleQuery) => Promise<unknown>;
  /** Waits for a request to follow; without it there is no /debug/trace. */
  readonly watch: (options: WatchOptions) => Promise<OpenedWatch>;
  readonly log: Logger;
  /** Starts a graceful shutdown; resolves when it is over. */
  readonly drain: () => Promise<void>;
  /** Ends the process; called after the drain. */
  readonly quit: () => void;
}

/** What the page asks for, in the words of its own query. */
interface ConsoleQuery {
  /** Revision of the configuration that the page has already. */
  readonly known: string | undefined;
  /** Text that the names of listed endpoints or backends contain. */
  readonly backends: string | undefined;
  /** Label by which the usage of models is added up. */
  readonly usage: string | undefined;
}

interface TaskList {
  readonly tasks: readonly unknown[];
  /** True when there are more than the list holds. */
  readonly truncated: boolean;
}

interface WatchOptions {
  /** Text of an expression that chooses the request; undefined for the next one. */
  readonly expression: string | undefined;
  /** Shows the credentials that the client has sent. */
  readonly showsSecrets: boolean;
}

type OpenedWatch =
  | { readonly ok: true; readonly reader: TraceReader }
  | { readonly ok: false; readonly code: "invalid_expression" | "too_many"; readonly reason: string };

export interface TraceReader {
  /** Resolves with at least one event, each a line of JSON; with undefined after the last one. */
  read(): Promise<readonly string[] | undefined>;
  /** Gives up waiting; `read` resolves with undefined. */
  close(): void;
}

/** A route on one listener. What its rules contain besides their name is for the reader alone. */
interface ExplainedRoute {
  readonly rules: readonly { readonly rule: string }[];
}

type AdminHandler<Context> = (event: H3Event, context: Context) => Response | Promise<Response>;

/** @typeParam Context what the path shows; that of the data plane, or less for paths that the controller has too */
export interface AdminPath<Context = AdminContext> {
  /** One sentence for the page of the server and for docs/reference/admin.md. */
  readonly help: string;
  /** Served without the token: a file of the page, which shows nothing about the process. */
  readonly isPublic?: true;
  readonly get?: AdminHandler<Context>;
  readonly post?: AdminHandler<Context>;
  readonly put?: AdminHandler<Context>;
}
