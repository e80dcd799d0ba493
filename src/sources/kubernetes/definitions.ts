/**
 * Tells when a custom resource definition was made, so that a kind that was missing is watched as soon as it exists.
 * Only the names are watched (PartialObjectMetadata): the definitions themselves are megabytes of schema.
 */
import { objectId, type KubeObject } from "../../api/object.ts";
import type { WatchedKind } from "./kinds.ts";

export const DEFINITIONS: WatchedKind = {
  group: "apiextensions.k8s.io",
  versions: ["v1"],
  kind: "CustomResourceDefinition",
  plural: "customresourcedefinitions",
  namespaced: false,
  metadataOnly: true,
};

export interface Appearances {
  /** A definition was seen: made, or changed, as when the server starts to serve it. */
  seen(definition: KubeObject): void;
  /** Resolves at the next sight of the kind's definition (true), or after `atMostMs` (false). */
  wait(kind: WatchedKind, atMostMs: number): Promise<boolean>;
  /** Lets everybody go. */
  close(): void;
}

export function createAppearances(): Appearances {
  const waiting = new Map<string, Set<(seen: boolean) => void>>();
  const letGo = (name: string): void => {
    for (const resolve of waiting.get(name) ?? []) resolve(true);
  };
  return {
    seen: (definition) => letGo(objectId(definition).name),
    wait: (kind, atMostMs) =>
      new Promise((resolve) => {
        const name = `${kind.plural}.${kind.group}`;
        const others = waiting.get(name) ?? new Set();
        waiting.set(name, others);
        const done = (seen: boolean): void => {
          clearTimeout(timer);
          others.delete(done);
          resolve(seen);
        };
        const timer = setTimeout(done, atMostMs, false);
        others.add(done);
      }),
    close: () => {
      for (const name of waiting.keys()) letGo(name);
    },
  };
}
