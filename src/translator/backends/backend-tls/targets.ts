/**
 * Resolves the targets of a BackendTLSPolicy (GEP-1897): ports of Services, GwBackends and InferencePools. `declare.ts`
 * uses it, and `policies/jwks/remote-jwks.ts` uses `tlsPolicyOn` for the server that it fetches keys from.
 *
 * When several policies name the same target and section, the oldest wins. A policy that names a port beats one that
 * names the whole Service.
 */
import { create } from "@bufbuild/protobuf";
import type { BackendTLSPolicy } from "../../../../generated/types/gateway-api/backendtlspolicy.ts";
import { PolicyTargetSchema, type PolicyTarget } from "../../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { createdAtMs, GWPROXY_GROUP, INFERENCE_GROUP } from "../../../api/refs.ts";
import type { Entry, Readable, ReadableIndex } from "../../../lib/collections/collection.ts";
import type { Read } from "../../../lib/collections/graph.ts";
import type { TranslatedBackend } from "../translate.ts";
import type { BackendVisibility, ServiceVisibility } from "../../references/visibility.ts";
import type { PoolView, ServiceView } from "../../shared/views.ts";

export interface TlsTargetContext {
  readonly policiesByTarget: ReadableIndex<BackendTLSPolicy>;
  readonly services: Readable<ServiceView>;
  readonly serviceVisibility: Readable<ServiceVisibility>;
  readonly backends: Readable<TranslatedBackend>;
  readonly backendVisibility: Readable<BackendVisibility>;
  readonly pools: Readable<PoolView>;
  readonly poolVisibility: Readable<BackendVisibility>;
}

export interface TlsTargets {
  /** Targets that no other policy has taken. */
  readonly targets: readonly PolicyTarget[];
  /** Keys ("namespace/name") of the Gateways that reach a target, sorted. */
  readonly gateways: readonly string[];
  /** Key ("namespace/name") of an older policy that has taken every target of this one. */
  readonly conflict: string | undefined;
}

type TargetRef = BackendTLSPolicy["spec"]["targetRefs"][number];

/** Returns the values under which the index `policiesByTarget` holds a policy. */
export function targetNames({ metadata, spec }: BackendTLSPolicy): string[] {
  return spec.targetRefs.map((ref) => nameOf(ref, metadata.namespace ?? ""));
}

export function resolveTlsTargets(policy: BackendTLSPolicy, context: TlsTargetContext, read: Read): TlsTargets {
  const namespace = policy.metadata.namespace ?? "";
  const own = `${namespace}/${policy.metadata.name}`;
  const targets: PolicyTarget[] = [];
  const gateways = new Set<string>();
  let conflict: string | undefined;
  for (const ref of policy.spec.targetRefs) {
    const policies = read.byIndex(context.policiesByTarget, nameOf(ref, namespace)).toSorted(byAge);
    const place = { ref, namespace, context, read };
    const found = ref.kind === "Service" ? resolveService(place, policies) : resolveBackend(place);
    for (const gateway of found.gateways) gateways.add(gateway);
    const winner = policies.find(({ value }) => names(value, ref))?.key ?? own;
    if (winner === own) targets.push(...found.targets);
    else conflict ??= winner;
  }
  return {
    targets,
    gateways: [...gateways].sort(),
    conflict: targets.length === 0 ? conflict : undefined,
  };
}

export interface TlsServer {
  readonly kind: "Service" | "GwBackend";
  readonly namespace: string;
  readonly name: string;
  /** Name and number of the port; a policy's `sectionName` may use either. */
  readonly ports: readonly string[];
}

/**
 * Returns the policy that governs one port of a server. A policy that names the port beats one that names the whole
 * server; among equals the oldest wins.
 */
export function tlsPolicyOn(
  { kind, namespace, name, ports }: TlsServer,
  policiesByTarget: ReadableIndex<BackendTLSPolicy>,
  read: Read,
): BackendTLSPolicy | undefined {
  const ref = { group: kind === "Service" ? "" : GWPROXY_GROUP, kind, name };
  const policies = read.byIndex(policiesByTarget, nameOf(ref, namespace)).toSorted(byAge);
  const sections = (policy: BackendTLSPolicy): (string | undefined)[] =>
    policy.spec.targetRefs.filter((one) => isSame(one, ref)).map(({ sectionName }) => sectionName);
  const ofPort = policies.find(({ value }) => sections(value).some((one) => one !== undefined && ports.includes(one)));
  return (ofPort ?? policies.find(({ value }) => sections(value).includes(undefined)))?.value;
}

interface Place {
  readonly ref: TargetRef;
  readonly namespace: string;
  readonly context: TlsTargetContext;
  readonly read: Read;
}

interface Found {
  readonly targets: readonly PolicyTarget[];
  readonly gateways: readonly string[];
}

const NOTHING: Found = { targets: [], gateways: [] };

/**
 * @param policies every policy that names the Service; ports that one of them names are not part of the whole Service
 */
function resolveService({ ref, namespace, context, read }: Place, policies: readonly Entry<BackendTLSPolicy>[]): Found {
  const key = `${namespace}/${ref.name}`;
  const service = ref.group === "" ? read.get(context.services, key) : undefined;
  if (service === undefined) return NOTHING;
  const isNamed = (port: ServiceView["ports"][number], section: string | undefined): boolean =>
    section === port.name || section === String(port.port);
  const claimed = (port: ServiceView["ports"][number]): boolean =>
    policies.some(({ value }) =>
      value.spec.targetRefs.some((one) => isSame(one, ref) && isNamed(port, one.sectionName)),
    );
  const ports = service.ports.filter((port) =>
    ref.sectionName === undefined ? !claimed(port) : isNamed(port, ref.sectionName),
  );
  const reach = read.get(context.serviceVisibility, key);
  return {
    targets: ports.map((port) => target(port.key, "")),
    gateways: ports.flatMap((port) => reach?.get(port.key) ?? []),
  };
}

function resolveBackend({ ref, namespace, context, read }: Place): Found {
  if (ref.kind === "InferencePool") return resolvePool({ ref, namespace, context, read });
  if (ref.kind !== "GwBackend" || ref.group !== GWPROXY_GROUP) return NOTHING;
  const key = `${namespace}/${ref.name}`;
  const backend = read.get(context.backends, key);
  if (backend === undefined) return NOTHING;
  const gateways = read.get(context.backendVisibility, key)?.gateways ?? [];
  return { targets: [target(backend.key, ref.sectionName ?? "")], gateways };
}

/** A pool has no sections, so a section that the policy names is ignored. */
function resolvePool({ ref, namespace, context, read }: Place): Found {
  if (ref.group !== INFERENCE_GROUP) return NOTHING;
  const key = `${namespace}/${ref.name}`;
  const pool = read.get(context.pools, key);
  if (pool === undefined) return NOTHING;
  return { targets: [target(pool.key, "")], gateways: read.get(context.poolVisibility, key)?.gateways ?? [] };
}

function target(backend: string, section: string): PolicyTarget {
  return create(PolicyTargetSchema, { target: { case: "backend", value: backend }, section });
}

function names({ spec }: BackendTLSPolicy, ref: TargetRef): boolean {
  return spec.targetRefs.some((one) => isSame(one, ref) && one.sectionName === ref.sectionName);
}

function isSame(a: TargetRef, b: TargetRef): boolean {
  return a.group === b.group && a.kind === b.kind && a.name === b.name;
}

function nameOf({ group, kind, name }: TargetRef, namespace: string): string {
  return `${group}/${kind} ${namespace}/${name}`;
}

function byAge(a: Entry<BackendTLSPolicy>, b: Entry<BackendTLSPolicy>): number {
  return createdAtMs(a.value) - createdAtMs(b.value) || (a.key < b.key ? -1 : 1);
}
