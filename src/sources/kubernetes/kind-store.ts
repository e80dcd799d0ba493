/**
 * Holds the last seen objects of one kind and turns lists and single changes into events. The watch fills it. An object
 * whose resourceVersion did not change causes no event.
 */
import { objectId, type KubeObject } from "../../api/object.ts";
import type { ObjectEvent } from "../source.ts";
import { nameKey } from "./kinds.ts";

export interface KindStore {
  /**
   * Applies the full state of a list. Objects that are missing in it are deleted, even if no watch reported the
   * deletion.
   */
  replace(objects: readonly KubeObject[]): void;
  set(object: KubeObject): void;
  remove(object: KubeObject): void;
  get(namespace: string, name: string): KubeObject | undefined;
  size(): number;
}

export function createKindStore(emit: (event: ObjectEvent) => void): KindStore {
  const objects = new Map<string, KubeObject>();

  const set = (object: KubeObject): void => {
    const key = nameKey(object);
    const known = objects.get(key);
    if (known !== undefined && known.metadata.resourceVersion === object.metadata.resourceVersion) return;
    objects.set(key, object);
    emit({ type: "set", object });
  };

  const remove = (object: KubeObject): void => {
    if (objects.delete(nameKey(object))) emit({ type: "delete", id: objectId(object) });
  };

  return {
    replace(listed) {
      const present = new Set(listed.map(nameKey));
      for (const [key, object] of objects) if (!present.has(key)) remove(object);
      for (const object of listed) set(object);
    },
    set,
    remove,
    get: (namespace, name) => objects.get(`${namespace}/${name}`),
    size: () => objects.size,
  };
}
