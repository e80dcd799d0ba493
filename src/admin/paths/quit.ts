/** `/quitquitquit`: ends the process after a drain. */
import { text } from "../http.ts";
import type { AdminPath } from "./admin-path.ts";

export const quit: AdminPath = {
  help: "drains and stops",
  async post(_event, { log, drain, quit: end }) {
    log.info("shutdown asked for by the admin server");
    await drain();
    // The answer leaves first.
    setImmediate(end);
    return text("shutdown now\n");
  },
};
