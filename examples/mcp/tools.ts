/** The tools of the example, in the order of the targets in gateway.yaml. */
import { randomInt } from "node:crypto";
import type { Tool } from "./tool-server.ts";

export const TOOLS: readonly Tool[] = [
  { name: "now", description: "Tells the time.", call: () => new Date().toISOString() },
  { name: "roll", description: "Rolls a die.", call: () => String(randomInt(1, 7)) },
];
