/**
 * Translates the content of a GwPolicy, apart from its targets: its traffic units, its backend block and its frontend
 * block. `../graph.ts` uses it.
 */
import { create } from "@bufbuild/protobuf";
import type { GwPolicy } from "../../../generated/types/policy.ts";
import {
  Phase,
  TrafficUnitSchema,
  type BackendSettings,
  type FrontendSettings,
  type TrafficUnit,
} from "../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { objectId } from "../../api/object.ts";
import type { Read } from "../../lib/collections/graph.ts";
import { trackAccess } from "../../lib/track-access.ts";
import { translateSettings } from "../backends/settings/settings.ts";
import type { Diagnostic } from "../shared/diagnostics.ts";
import { within, type Report } from "../shared/report.ts";
import type { BackendCollections } from "../references/backend-refs.ts";
import { SecretReader, type SecretCollections } from "../references/secrets.ts";
import { JwksReader, type JwksCollections } from "./jwks/remote-jwks.ts";
import { unsupportedFields } from "../shared/unsupported-fields.ts";
import { ServiceReader } from "./shared/external-service.ts";
import type { RemoteJwksRequest } from "./shared/remote-keys.ts";
import { translateFrontend } from "./frontend/frontend.ts";
import { UNIT_TRANSLATORS } from "./index.ts";
import { failClosedUnit } from "./fail-closed.ts";

export interface PolicyContent {
  readonly phase: Phase;
  readonly override: boolean;
  readonly units: readonly TrafficUnit[];
  readonly backend: BackendSettings | undefined;
  readonly frontend: FrontendSettings | undefined;
  /** Keys of the Backends that the policy calls, sorted. */
  readonly uses: readonly string[];
  /**
   * The part of `uses` that its `backend` block needs; these have to be known wherever a backend that it governs is
   * known.
   */
  readonly backendUses: readonly string[];
  /** JWKS documents to fetch for the policy. */
  readonly remoteJwks: readonly RemoteJwksRequest[];
  readonly diagnostics: readonly Diagnostic[];
}

export type ContentCollections = SecretCollections & BackendCollections & JwksCollections;

export function translateContent(policy: GwPolicy, collections: ContentCollections, read: Read): PolicyContent {
  const id = objectId(policy);
  const { strategy, targetRefs: _refs, targetSelectors: _selectors, ...sections } = policy.spec;
  const { view, unread } = trackAccess({ spec: sections });
  const { traffic, backend, frontend } = view.spec;
  const diagnostics: Diagnostic[] = [];
  const report: Report = (path, message, severity = "error") =>
    void diagnostics.push({ code: "policy_invalid", severity, object: id, path, message });
  const secrets = new SecretReader(collections, read, id.namespace);
  const services = new ServiceReader(collections, read, id);
  const jwks = new JwksReader(collections, read, id);
  const preRouting = traffic?.phase === "PreRouting";
  const context = { secrets, services, jwks, preRouting, report: within(report, "spec.traffic") };
  const units =
    traffic === undefined
      ? []
      : Object.values(UNIT_TRANSLATORS).flatMap((translator) => translator.translate(traffic, context) ?? []);
  const phase = preRouting ? Phase.PRE_ROUTING : Phase.POST_ROUTING;
  const destinations = new ServiceReader(collections, read, id);
  const settings = translateSettings(
    backend,
    { secrets, services: destinations, jwks },
    within(report, "spec.backend"),
  );
  const connections = translateFrontend(frontend, { services, report: within(report, "spec.frontend") });
  const errors = diagnostics.map(({ path }) => path);
  const unsupported = unsupportedFields("gwproxy.dev/GwPolicy", unread(), errors);
  for (const { path, message, failsClosed } of unsupported) report(path, message, failsClosed ? "error" : "warning");
  const closed = unsupported
    .filter(({ failsClosed }) => failsClosed)
    .map(({ path }) => failClosedUnit(`${path} is not enforced`));
  return {
    phase,
    override: strategy?.inheritance === "Override",
    units: [...closed.slice(0, 1), ...units].map((unit) => create(TrafficUnitSchema, { unit })),
    backend: settings,
    frontend: connections,
    uses: [...new Set([...services.uses, ...destinations.uses])].sort(),
    backendUses: destinations.uses,
    remoteJwks: jwks.requests,
    diagnostics,
  };
}
