/** Indexes the observed objects of each data plane by the Gateway that controls them. `deployer.ts` uses it. */
import { objectId, objectKey, type KubeObject } from "../api/object.ts";
import { ownerOf } from "./prune.ts";

export interface Children {
  /** @returns "namespace/name" of each Gateway whose data plane changed */
  set(object: KubeObject): readonly string[];
  /** @param key key of the object, from objectKey */
  delete(key: string): readonly string[];
  of(gateway: string): ReadonlyMap<string, KubeObject>;
}

const NONE: ReadonlyMap<string, KubeObject> = new Map();

export function createChildren(): Children {
  const byGateway = new Map<string, Map<string, KubeObject>>();
  const owners = new Map<string, string>();
  const remove = (key: string): readonly string[] => {
    const gateway = owners.get(key);
    if (gateway === undefined) return [];
    owners.delete(key);
    const own = byGateway.get(gateway);
    own?.delete(key);
    if (own?.size === 0) byGateway.delete(gateway);
    return [gateway];
  };
  return {
    set(object) {
      const key = objectKey(objectId(object));
      const owner = ownerOf(object)?.gateway;
      // When an object loses its owner reference, its former Gateway is checked, which applies the object again.
      const left = owners.get(key) === owner ? [] : remove(key);
      if (owner === undefined) return left;
      const own = byGateway.get(owner) ?? new Map<string, KubeObject>();
      byGateway.set(owner, own.set(key, object));
      owners.set(key, owner);
      return [...left, owner];
    },
    delete: remove,
    of: (gateway) => byGateway.get(gateway) ?? NONE,
  };
}
