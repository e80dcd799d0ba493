/** The programs that tests run against, built from Go modules and Python packages by build.sh into a cache outside the checkout. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";

export type Part =
  | "kubernetes"
  | "node"
  | "conformance"
  | "services"
  | "telemetry"
  | "metrics"
  | "protocols"
  | "inference"
  | "spire"
  | "helm"
  | "python";

const built = new Map<Part, Promise<string>>();

/** @returns the folder of the part's programs; builds them first when they are missing, which takes some minutes */
export function programs(part: Part): Promise<string> {
  const known = built.get(part) ?? build(part);
  built.set(part, known);
  return known;
}

async function build(part: Part): Promise<string> {
  const script = join(import.meta.dirname, "build.sh");
  const running = spawn("bash", [script, part], { stdio: ["ignore", "pipe", "inherit"] });
  let printed = "";
  running.stdout.setEncoding("utf8").on("data", (text: string) => (printed += text));
  const [code] = (await once(running, "close")) as [number | null]; // as the event is declared
  if (code !== 0) throw new Error(`${part} could not be built (exit code ${code}); the messages are above`);
  return printed.trim();
}
