/** Starts the console in the page that src/admin/paths/console.ts serves. codegen/emit/console.ts bundles it. */
import { render } from "preact";
import { App } from "./app.tsx";
import { AdminClient } from "./client/admin-client.ts";

const root = document.getElementById("console");
if (root !== null) {
  root.replaceChildren();
  render(<App client={new AdminClient()} />, root);
}
