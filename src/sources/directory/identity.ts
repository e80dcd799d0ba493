/**
 * Guesses which object a document means when a typing error hides it: a missing name, a misspelt kind or API group,
 * text that cannot be read. check.ts uses it, so that such a document neither deletes an object that served nor opens a
 * route that was closed.
 */
import { KINDS } from "../../../generated/kinds.ts";
import type { ObjectId } from "../../api/object.ts";
import { GWPROXY_GROUP } from "../../api/refs.ts";
import { isRecord } from "../../lib/is-record.ts";
import { closest } from "../../lib/suggest.ts";

/** The known parts of an object's id; an undefined part may have any value. */
export type Identity = { readonly [Part in keyof ObjectId]?: string | undefined };

export interface KnownKind {
  readonly group: string;
  readonly version: string;
  readonly kind: string;
}

const GROUPS = [...new Set(KINDS.map(({ group }) => group))];
const KIND_NAMES = [...new Set(KINDS.map(({ kind }) => kind))];

/**
 * Returns the kind that was probably meant by an `apiVersion` and a `kind` of which at least one is misspelt or
 * missing. Returns undefined for kinds that are known and for those that resemble none.
 */
export function nearestKind(apiVersion: unknown, kind: unknown): KnownKind | undefined {
  if (typeof kind !== "string") return undefined;
  if (knownKind(apiVersion, kind) !== undefined) return undefined;
  const group = typeof apiVersion === "string" ? groupOf(apiVersion) : "";
  const meant = closest(kind, KIND_NAMES);
  const candidates = KINDS.filter((known) => known.kind === meant);
  if (meant !== undefined && isForeign(kind, meant)) return undefined;
  return (
    candidates.find((known) => known.group === group) ??
    candidates.find((known) => group === "" || closest(group, GROUPS) === known.group)
  );
}

/**
 * Kinds of Kubernetes and of the Gateway API that are spelt like one that the gateway reads but mean something else.
 */
const FOREIGN_KINDS = new Set(
  "Role Node Event Ingress IngressClass StorageClass RuntimeClass UDPRoute XListenerSet XMesh XBackendTrafficPolicy".split(
    " ",
  ),
);

function isForeign(kind: string, meant: string): boolean {
  return kind !== meant && FOREIGN_KINDS.has(kind);
}

/** Whether the group is the gateway's own, in which no other project defines kinds. */
export function isOurGroup(apiVersion: string): boolean {
  return groupOf(apiVersion) === GWPROXY_GROUP;
}

/** Whether an invalid document was meant as a GwPolicy, which must close its targets instead of leaving them open. */
export function isMeantAsPolicy(value: Readonly<Record<string, unknown>>): boolean {
  const { apiVersion, kind, spec } = value;
  const meant = nearestKind(apiVersion, kind) ?? knownKind(apiVersion, kind);
  if (meant !== undefined) return meant.group === GWPROXY_GROUP && meant.kind === "GwPolicy";
  const isOurs = typeof apiVersion === "string" && closest(groupOf(apiVersion), GROUPS) === GWPROXY_GROUP;
  return isOurs && isRecord(spec) && ("targetRefs" in spec || "targetSelectors" in spec);
}

/** Returns the parts of the id that can be read from a document. */
export function readIdentity(value: Readonly<Record<string, unknown>>): Identity {
  const { apiVersion, kind } = value;
  const meant = nearestKind(apiVersion, kind) ?? knownKind(apiVersion, kind);
  const metadata = isRecord(value["metadata"]) ? value["metadata"] : {};
  return {
    group: meant?.group,
    kind: meant?.kind,
    namespace: textOrUndefined(metadata["namespace"]),
    name: textOrUndefined(metadata["name"]),
  };
}

/**
 * Whether an object matches every known part of an identity. With a misspelt kind the name still has to match, and vice
 * versa.
 */
export function hasIdentity(id: ObjectId, identity: Identity): boolean {
  return (["group", "kind", "namespace", "name"] as const).every(
    (part) => identity[part] === undefined || identity[part] === id[part],
  );
}

/** Whether `kind` is known in the group of `apiVersion`, in any version. */
export function isKnownKind(apiVersion: string, kind: string): boolean {
  return knownKind(apiVersion, kind) !== undefined;
}

function knownKind(apiVersion: unknown, kind: unknown): KnownKind | undefined {
  if (typeof apiVersion !== "string") return undefined;
  const group = apiVersion.includes("/") ? groupOf(apiVersion) : "";
  return KINDS.find((known) => known.group === group && known.kind === kind);
}

function groupOf(apiVersion: string): string {
  const slash = apiVersion.indexOf("/");
  if (slash >= 0) return apiVersion.slice(0, slash);
  // A group without a version, such as "gwproxy.dev".
  return apiVersion.includes(".") ? apiVersion : "";
}

/** Returns a valid name; an invalid one does not say which name was meant. */
function textOrUndefined(value: unknown): string | undefined {
  return typeof value === "string" && /^[a-z0-9](?:[-a-z0-9.]*[a-z0-9])?$/.test(value) ? value : undefined;
}
