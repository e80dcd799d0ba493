/**
 * Declares the collections of BackendTLSPolicies: their content, their targets, the resources sent to data planes, and
 * the input for their status. `../../graph.ts` uses it.
 */
import { create } from "@bufbuild/protobuf";
import type { BackendTLSPolicy } from "../../../../generated/types/gateway-api/backendtlspolicy.ts";
import { BackendSettingsSchema, Phase, PolicySchema } from "../../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { objectId } from "../../../api/object.ts";
import { resourceOf } from "../../../ir/encode.ts";
import { tlsPolicyKey } from "../../../ir/keys.ts";
import type { Collection } from "../../../lib/collections/collection.ts";
import type { Graph, Input } from "../../../lib/collections/graph.ts";
import type { StatusInput } from "../../shared/status-input.ts";
import type { ScopedResource } from "../../shared/resource-store.ts";
import { irRef } from "../../references/refs.ts";
import type { SecretCollections } from "../../references/secrets.ts";
import { declareScopedResources, scopeTo } from "../../shared/scoped-resources.ts";
import { translateTlsPolicy, type TlsPolicyContent } from "./content.ts";
import { resolveTlsTargets, targetNames, type TlsTargetContext, type TlsTargets } from "./targets.ts";

export interface BackendTlsOptions extends Omit<TlsTargetContext, "policiesByTarget"> {
  readonly secrets: SecretCollections;
}

/**
 * Creation time given to every translated BackendTLSPolicy. It is younger than any GwPolicy, so a GwPolicy wins when
 * both configure one backend.
 */
const YOUNGEST_MS = (1n << 63n) - 1n;

export function declareBackendTls(
  graph: Graph,
  input: Input<BackendTLSPolicy>,
  { secrets, ...reach }: BackendTlsOptions,
): { readonly scopedResources: Collection<readonly ScopedResource[]>; readonly statusInputs: Collection<StatusInput> } {
  const context = { ...reach, policiesByTarget: input.index(targetNames) };
  const contents = graph.derive("backend TLS contents", input, (_key, policy, read) =>
    translateTlsPolicy(policy, secrets, read),
  );
  const targets = graph.derive("backend TLS targets", input, (_key, policy, read) =>
    resolveTlsTargets(policy, context, read),
  );
  return {
    scopedResources: declareScopedResources(graph, "resources of backend TLS", input, (key, policy, read) =>
      sentPolicy(policy, read.get(contents, key), read.get(targets, key)),
    ),
    statusInputs: graph.derive("backend TLS status inputs", input, (key, policy, read): StatusInput => {
      const { error, refError } = read.get(contents, key) ?? {};
      const { gateways = [], conflict } = read.get(targets, key) ?? {};
      const id = objectId(policy);
      return {
        kind: "BackendTLSPolicy",
        id,
        generation: policy.metadata.generation ?? 0,
        key: tlsPolicyKey(id.namespace, id.name),
        gateways,
        conflict,
        error,
        refError,
      };
    }),
  };
}

function sentPolicy(
  policy: BackendTLSPolicy,
  content: TlsPolicyContent | undefined,
  resolved: TlsTargets | undefined,
): ScopedResource[] {
  if (content === undefined || resolved === undefined || resolved.targets.length === 0) return [];
  const id = objectId(policy);
  const message = create(PolicySchema, {
    key: tlsPolicyKey(id.namespace, id.name),
    object: irRef(id),
    createdAtMs: YOUNGEST_MS,
    targets: [...resolved.targets],
    phase: Phase.POST_ROUTING,
    backend: create(BackendSettingsSchema, { tls: content.tls }),
  });
  return scopeTo(resolved.gateways, [resourceOf("Policy", message)]);
}
