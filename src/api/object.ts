/** The part of a Kubernetes object that all modules may rely on; kinds add their generated `spec` and `status`. */
export interface KubeObject {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: ObjectMeta;
}

export interface ObjectMeta {
  readonly name: string;
  readonly namespace?: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
  readonly creationTimestamp?: string;
  /** Set when the object is being deleted. */
  readonly deletionTimestamp?: string;
  readonly generation?: number;
  readonly resourceVersion?: string;
  readonly uid?: string;
}

/** Identifies one object of any kind. `namespace` is "" for cluster-scoped kinds. */
export interface ObjectId {
  readonly group: string;
  readonly kind: string;
  readonly namespace: string;
  readonly name: string;
}

export function objectId(object: KubeObject): ObjectId {
  const { apiVersion, kind, metadata } = object;
  const slash = apiVersion.indexOf("/");
  return {
    group: slash < 0 ? "" : apiVersion.slice(0, slash),
    kind,
    namespace: metadata.namespace ?? "",
    name: metadata.name,
  };
}

/** Returns a stable text key: "group/kind/namespace/name". */
export function objectKey(id: ObjectId): string {
  return `${id.group}/${id.kind}/${id.namespace}/${id.name}`;
}
