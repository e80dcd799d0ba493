/**
 * Reads the annotation `gwproxy.dev/internal-ports` of a Gateway: listener ports that get no socket and no Service
 * port, and are reached only through a tunnel. `gateway.ts` uses it.
 *
 * One invalid entry makes the Gateway invalid as a whole. The valid entries still count, so that a typing error never
 * opens a port that was closed.
 */
import type { Gateway } from "../../../generated/types/gateway-api/gateway.ts";
import { Reason } from "../../api/conditions.ts";
import type { ConditionError } from "../shared/views.ts";

export interface InternalPorts {
  readonly ports: ReadonlySet<number>;
  readonly error: ConditionError | undefined;
}

const ANNOTATION = "gwproxy.dev/internal-ports";

export function internalPorts({ metadata, spec }: Gateway): InternalPorts {
  const text = metadata.annotations?.[ANNOTATION];
  if (text === undefined) return { ports: new Set(), error: undefined };
  const entries = text.split(",").map((entry) => entry.trim());
  const own = new Set(spec.listeners.map(({ port }) => port));
  const isPort = (entry: string): boolean => /^[1-9]\d{0,4}$/.test(entry) && own.has(Number(entry));
  const bad = entries.find((entry) => !isPort(entry));
  return {
    ports: new Set(entries.filter(isPort).map(Number)),
    error:
      bad === undefined
        ? undefined
        : {
            reason: Reason.Invalid,
            message: `annotation ${ANNOTATION}: "${bad}" is no port of a listener of the Gateway`,
          },
  };
}
