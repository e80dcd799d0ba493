/** `/quitquitquit`: drains the process and ends it. */
import { text } from "../http.ts";
import type { AdminPath } from "./admin-path.ts";

export const quit: AdminPath = {
  help: "drains and stops",
  async post(_event, { log, drain, quit: end }) {
    log.info("shutdown asked for by the admin server");
    await drain();
    // Ends the process after the response has been written.
    setImmediate(end);
    return text("shutdown now\n");
  },
};
