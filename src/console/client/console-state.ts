/** Holds what the page knows and fetches it anew every few seconds; app.tsx draws it. */
import type { ConfigurationContent, ConsoleData } from "../data.ts";
import { indexRoutes, type SearchableRoute } from "../model/filter.ts";
import { addSample, type TrafficSample } from "../model/rates.ts";
import { type AdminClient, TokenNeeded } from "./admin-client.ts";
import { messageOf } from "./error-text.ts";
import { startPolling, type Poller } from "./poller.ts";

type Connection = "connecting" | "connected" | "lost" | "token";

export interface ConsoleState {
  readonly connection: Connection;
  /** Why the connection is lost; empty otherwise. */
  readonly problem: string;
  /** The last answer; it stays while the connection is lost. */
  readonly data: ConsoleData | undefined;
  readonly content: ConfigurationContent | undefined;
  readonly routes: readonly SearchableRoute[];
  readonly samples: readonly TrafficSample[];
}

export const EMPTY_STATE: ConsoleState = {
  connection: "connecting",
  problem: "",
  data: undefined,
  content: undefined,
  routes: [],
  samples: [],
};

const POLL_MS = 3000;

export interface ConsoleFeed {
  /** Text that listed endpoints contain, and label by which usage is added up. */
  ask(query: { readonly backends?: string; readonly usage?: string }): void;
  retry(): void;
  stop(): void;
}

/** @param onState called with each new state */
export function startFeed(client: AdminClient, onState: (state: ConsoleState) => void): ConsoleFeed {
  let state = EMPTY_STATE;
  let query: { readonly backends?: string; readonly usage?: string } = {};
  const publish = (change: Partial<ConsoleState>): void => onState((state = { ...state, ...change }));

  const poll = async (): Promise<boolean> => {
    const known = state.content === undefined ? "" : (state.data?.configuration.revision ?? "");
    try {
      const search = new URLSearchParams({ ...query, known }).toString();
      // The cast is sound: the server and the page are of one version, since the server delivers the page.
      const data = (await client.fetchJson(`/console/data?${search}`)) as ConsoleData;
      const { content } = data.configuration;
      publish({
        connection: "connected",
        problem: "",
        data,
        ...(content === undefined ? {} : { content, routes: indexRoutes(content.routes) }),
        samples: addSample(state.samples, { ...data.traffic, atMs: Date.parse(data.process.now) }),
      });
      return true;
    } catch (error) {
      publish({ connection: error instanceof TokenNeeded ? "token" : "lost", problem: messageOf(error) });
      return false;
    }
  };

  const poller: Poller = startPolling(poll, POLL_MS);
  return {
    ask(next) {
      query = { ...query, ...next };
      poller.poke();
    },
    retry: () => poller.poke(),
    stop: () => poller.stop(),
  };
}
