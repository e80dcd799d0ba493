/** Starts the gateway with one manifest, for the examples that bring the servers behind it themselves. */
import { spawn } from "node:child_process";
import { join } from "node:path";

/**
 * Listens on loopback, prints what the gateway prints, and ends with it.
 * @param hints printed once the gateway listens
 */
export function startGateway(manifest: string, hints: string): void {
  const program = join(import.meta.dirname, "../../bin/gwproxy.mjs");
  const command = [program, "up", "-f", manifest, "--bind-address", "127.0.0.1"];
  const gateway = spawn(process.execPath, command, { stdio: ["ignore", "pipe", "inherit"] });
  gateway.stdout.pipe(process.stdout);
  gateway.stdout.once("data", () => setImmediate(() => process.stdout.write(hints)));
  gateway.once("exit", (code) => process.exit(code ?? 1));
  // Ctrl-C reaches both processes; a signal to this one alone is passed on.
  process.on("SIGTERM", () => gateway.kill("SIGTERM"));
  process.on("SIGINT", () => undefined);
}
