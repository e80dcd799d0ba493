/**
 * Describes a document whose kind the gateway does not read: what it probably is, and what the user can do. check.ts
 * uses it.
 */
import { KINDS } from "../../../generated/kinds.ts";
import { GATEWAY_GROUP } from "../../api/refs.ts";
import { isRecord } from "../../lib/is-record.ts";
import { isKnownKind, isOurGroup, nearestKind } from "./identity.ts";

export interface ForeignKind {
  readonly severity: "error" | "warning";
  readonly path: string;
  readonly message: string;
  readonly suggestion: string;
  /** True when the document was probably meant as a kind that the gateway reads. */
  readonly isMisspelt: boolean;
}

/**
 * Returns undefined for kinds that the gateway reads, and for documents without apiVersion and kind, which are not
 * objects.
 */
export function describeForeignKind(value: Readonly<Record<string, unknown>>): ForeignKind | undefined {
  const { apiVersion, kind } = value;
  if (isChart(value)) return foreign("", "this is a Helm chart, not a Kubernetes object", helmAdvice("."));
  if (isKustomization(value)) {
    const suggestion = "validate what it builds: kustomize build . > built.yaml, then gwproxy validate -f built.yaml";
    return foreign("", "a Kustomization is input for kustomize; the gateway does not read it", suggestion);
  }
  if (typeof apiVersion !== "string" || typeof kind !== "string" || apiVersion === "" || kind === "") return undefined;
  if (isKnownKind(apiVersion, kind) || isList(value)) return undefined;
  const meant = nearestKind(apiVersion, kind);
  if (meant !== undefined) return misspelt(apiVersion, kind, meant);
  if (isOurGroup(apiVersion)) {
    const kinds = KINDS.filter(({ owned }) => owned).map((known) => known.kind);
    const suggestion = `the kinds of this group are ${kinds.join(", ")}`;
    return { ...foreign("kind", `${apiVersion} has no kind ${kind}`, suggestion), severity: "error", isMisspelt: true };
  }
  const message = `the gateway does not read ${kind} of ${apiVersion}`;
  return foreign(
    "kind",
    message,
    ADVICE[kind] ?? "leave it out of these files, or let the warning stand: the gateway ignores the object",
  );
}

/** Advice for kinds that newcomers often bring along. */
const ADVICE: Readonly<Record<string, string>> = {
  Ingress: "write an HTTPRoute for it: https://gateway-api.sigs.k8s.io/guides/migrating-from-ingress",
  IngressClass: "write a GatewayClass, or use the class gwproxy, which exists in files without an object",
  UDPRoute: "UDP is not served; remove the route",
  XListenerSet: "write a ListenerSet of gateway.networking.k8s.io/v1",
};

function misspelt(apiVersion: string, kind: string, meant: NonNullable<ReturnType<typeof nearestKind>>): ForeignKind {
  const wanted = meant.group === "" ? meant.version : `${meant.group}/${meant.version}`;
  const message = `the gateway does not read ${kind} of ${apiVersion}`;
  const isKindWrong = kind !== meant.kind;
  const isGroupWrong = (apiVersion.split("/")[0] ?? "") !== (wanted.split("/")[0] ?? "");
  const path = isGroupWrong ? "apiVersion" : "kind";
  const suggestion = isGroupWrong
    ? `did you mean \`${wanted}\`${isKindWrong ? ` and the kind \`${meant.kind}\`` : ""}?`
    : `did you mean \`${meant.kind}\`?`;
  // These groups have no other kinds that the document could mean.
  const isCertain = !isGroupWrong && (isOurGroup(apiVersion) || meant.group === GATEWAY_GROUP || meant.group === "");
  return { severity: isCertain ? "error" : "warning", path, message, suggestion, isMisspelt: true };
}

function foreign(path: string, message: string, suggestion: string): ForeignKind {
  return { severity: "warning", path, message, suggestion, isMisspelt: false };
}

/** @param path path of the chart */
function helmAdvice(path: string): string {
  return `validate what it renders: helm template ${path} > rendered.yaml, then gwproxy validate -f rendered.yaml`;
}

/** Recognises Chart.yaml, a file of Helm whose apiVersion names no group. */
function isChart({ apiVersion, kind, name, version }: Readonly<Record<string, unknown>>): boolean {
  return kind === undefined && (apiVersion === "v1" || apiVersion === "v2") && isText(name) && isText(version);
}

/** Recognises kustomization.yaml, which may leave out apiVersion and kind. */
function isKustomization(value: Readonly<Record<string, unknown>>): boolean {
  const { apiVersion, kind, metadata } = value;
  if (typeof apiVersion === "string" && apiVersion.startsWith("kustomize.config.k8s.io/")) return true;
  const isBare = apiVersion === undefined && kind === undefined && !isRecord(metadata);
  return isBare && KUSTOMIZE_FIELDS.some((field) => Array.isArray(value[field]));
}

const KUSTOMIZE_FIELDS = ["resources", "bases", "patches", "patchesStrategicMerge", "configMapGenerator", "components"];

function isList({ kind, items }: Readonly<Record<string, unknown>>): boolean {
  return typeof kind === "string" && kind.endsWith("List") && Array.isArray(items);
}

function isText(value: unknown): boolean {
  return typeof value === "string" && value !== "";
}
