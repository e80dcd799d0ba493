/** `/config_dump`: the configuration that the process runs or serves, whole or one section of it. */
import { getQuery } from "h3";
import { json, text } from "../http.ts";
import type { AdminPath, StateContext } from "./admin-path.ts";

/** The same state under the path where operators of other controllers of the Gateway API look for it. */
export const snapshotState: AdminPath<StateContext> = {
  help: "all of /config_dump on one line; ?pretty: on many",
  async get(event, { state }) {
    const { pretty } = getQuery(event);
    return json(await state(), pretty === undefined ? 0 : 2);
  },
};

export const configDump: AdminPath<StateContext> = {
  help: "the configuration in force, as JSON; ?section=NAME: one key of it alone",
  async get(event, { state }) {
    const { section } = getQuery(event);
    const dump = await state();
    if (section === undefined) return json(dump);
    const entry = Object.entries(dump).find(([name]) => name === section);
    if (entry !== undefined) return json(Object.fromEntries([entry]));
    return text(`unknown section; use one of ${Object.keys(dump).join(", ")}\n`, 400);
  },
};
