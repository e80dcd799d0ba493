/** `/version`: the version of this program. */
import { VERSION } from "../../lib/version.ts";
import { json } from "../http.ts";
import type { AdminPath } from "./admin-path.ts";

export const version: AdminPath<unknown> = {
  help: "the version of this program, as JSON",
  get: () => json({ string: `gwproxy ${VERSION}`, version: VERSION }),
};
