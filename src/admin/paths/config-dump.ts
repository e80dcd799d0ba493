/** `/config_dump`: the configuration that the process runs or serves, whole or one section of it. */
import { getQuery } from "h3";
import { json, text } from "../http.ts";
import type { AdminPath, StateContext } from "./admin-path.ts";

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
