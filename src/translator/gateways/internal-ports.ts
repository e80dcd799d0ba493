/**
 * The annotation `gwproxy.dev/internal-ports` of a Gateway: ports of its own listeners that get no socket and no Service
 * port, and are reached through a tunnel alone. One bad entry refuses the Gateway; what can be read of the rest still
 * counts, so that a slip of the pen opens nothing that was closed.
 */
import type { Gateway } from "../../../generated/types/gateway-api/gateway.ts";
import { Reason } from "../../api/conditions.ts";
import type { Fault } from "./gateway.ts";

export interface InternalPorts {
  readonly ports: ReadonlySet<number>;
  readonly fault: Fault | undefined;
}

const ANNOTATION = "gwproxy.dev/internal-ports";

export function internalPorts({ metadata, spec }: Gateway): InternalPorts {
  const text = metadata.annotations?.[ANNOTATION];
  if (text === undefined) return { ports: new Set(), fault: undefined };
  const entries = text.split(",").map((entry) => entry.trim());
  const own = new Set(spec.listeners.map(({ port }) => port));
  const isPort = (entry: string): boolean => /^[1-9]\d{0,4}$/.test(entry) && own.has(Number(entry));
  const bad = entries.find((entry) => !isPort(entry));
  return {
    ports: new Set(entries.filter(isPort).map(Number)),
    fault:
      bad === undefined
        ? undefined
        : {
            reason: Reason.Invalid,
            message: `annotation ${ANNOTATION}: "${bad}" is no port of a listener of the Gateway`,
          },
  };
}
