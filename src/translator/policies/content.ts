/** What a GwPolicy says, apart from what it is attached to: its units and its backend block. */
import { create } from "@bufbuild/protobuf";
import type { GwPolicy } from "../../../generated/types/policy.ts";
import {
  Phase,
  TrafficUnitSchema,
  type BackendSettings,
  type TrafficUnit,
} from "../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { objectId } from "../../api/object.ts";
import type { Read } from "../../lib/collections/graph.ts";
import { translateSettings, within, type Report } from "../backends/settings.ts";
import type { Diagnostic } from "../diagnostics.ts";
import { SecretReader, type SecretCollections } from "../secrets.ts";
import { UNIT_TRANSLATORS } from "./index.ts";

export interface PolicyContent {
  readonly phase: Phase;
  readonly override: boolean;
  readonly units: readonly TrafficUnit[];
  readonly backend: BackendSettings | undefined;
  readonly diagnostics: readonly Diagnostic[];
}

export function translateContent(policy: GwPolicy, collections: SecretCollections, read: Read): PolicyContent {
  const id = objectId(policy);
  const { traffic, backend, strategy } = policy.spec;
  const diagnostics: Diagnostic[] = [];
  const report: Report = (path, message) =>
    void diagnostics.push({ code: "policy_invalid", severity: "error", object: id, path, message });
  const secrets = new SecretReader(collections, read, id.namespace);
  const context = { secrets, report: within(report, "spec.traffic") };
  const units = traffic === undefined ? [] : UNIT_TRANSLATORS.flatMap((unit) => unit.translate(traffic, context) ?? []);
  return {
    phase: traffic?.phase === "PreRouting" ? Phase.PRE_ROUTING : Phase.POST_ROUTING,
    override: strategy?.inheritance === "Override",
    units: units.map((unit) => create(TrafficUnitSchema, { unit })),
    backend: translateSettings(backend, secrets, within(report, "spec.backend")),
    diagnostics,
  };
}
