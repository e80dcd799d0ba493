/** Which policies at least one data plane has applied. */
import type { AckedResource } from "../../xds/server/session.ts";

export interface Acknowledgements {
  has(resourceKey: string): boolean;
  /** @returns the keys that were not acknowledged before */
  add(resources: readonly AckedResource[]): string[];
}

export function createAcknowledgements(): Acknowledgements {
  const keys = new Set<string>();
  return {
    has: (resourceKey) => keys.has(resourceKey),
    add(resources) {
      const fresh = resources.filter(({ type, key }) => type === "Policy" && !keys.has(key)).map(({ key }) => key);
      for (const key of fresh) keys.add(key);
      return fresh;
    },
  };
}
