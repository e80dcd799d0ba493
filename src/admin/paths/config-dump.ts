/** `/config_dump`: the configuration that the data plane runs. */
import { json } from "../http.ts";
import type { AdminPath } from "./admin-path.ts";

export const configDump: AdminPath = {
  help: "the configuration in force, as JSON",
  get: async (_event, { state }) => json(await state()),
};
