/**
 * Notices new custom resource definitions, so that a missing kind is watched as soon as it exists. The Kubernetes
 * source uses it. It watches only names (PartialObjectMetadata), because the definitions themselves contain megabytes
 * of schema.
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
  /** Reports that a definition was created or changed, as when the server starts to serve it. */
  seen(definition: KubeObject): void;
  /** Resolves with true when the definition of the kind is reported next, or with false after `atMostMs`. */
  wait(kind: WatchedKind, atMostMs: number): Promise<boolean>;
  /** Resolves all waits. */
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
