/** `/debug/tasks`: what the process is doing: its listeners, their connections, the requests and calls in progress. */
import { json } from "../http.ts";
import type { AdminPath, StateContext } from "./admin-path.ts";

export const tasks: AdminPath<StateContext> = {
  help: "listeners, their connections, and the requests and calls in progress, as JSON",
  async get(_event, { tasks: listTasks }) {
    const { tasks: workload, truncated } = await listTasks();
    // The request that is being answered is what the admin server does.
    return json({ admin: [{ kind: "request", name: "GET /debug/tasks", state: "answering" }], workload, truncated });
  },
};
