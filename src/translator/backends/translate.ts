/**
 * Translates one GwBackend into one Backend resource. `../graph.ts` uses it. If any part fails to translate, nothing is
 * sent: routes to the backend answer 500, and the condition `Accepted` gives the reason. Only the policies of one
 * provider in a group may fail without affecting the rest.
 */
import { create } from "@bufbuild/protobuf";
import type { GwBackend, GwBackendSpec } from "../../../generated/types/backend.ts";
import type { GwBackendSpecKind } from "../../../generated/unions.ts";
import {
  BackendSchema,
  DynamicBackendSchema,
  type Backend,
  type DestinationScope,
} from "../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { objectId, type ObjectId } from "../../api/object.ts";
import { resourceOf } from "../../ir/encode.ts";
import { backendKey } from "../../ir/keys.ts";
import type { Resource } from "../../ir/resource.ts";
import type { Readable } from "../../lib/collections/collection.ts";
import type { Read } from "../../lib/collections/graph.ts";
import { trackAccess } from "../../lib/track-access.ts";
import type { BackendCollections, PoolNames } from "../references/backend-refs.ts";
import type { Diagnostic } from "../shared/diagnostics.ts";
import { ServiceReader } from "../policies/shared/external-service.ts";
import type { RemoteJwksRequest, RemoteKeys } from "../policies/shared/remote-keys.ts";
import { irRef } from "../references/refs.ts";
import type { Report } from "../shared/report.ts";
import { SecretReader, type SecretCollections } from "../references/secrets.ts";
import { unsupportedFields } from "../shared/unsupported-fields.ts";
import { translateA2a } from "./a2a.ts";
import { translateAgentRuntime } from "./agent-runtime.ts";
import { backendsOf, translateLlm } from "./llm/llm.ts";
import type { McpServiceCollections } from "./mcp-targets.ts";
import { servicesOf, translateMcp } from "./mcp.ts";
import type { FullSettingsContext } from "./settings/context.ts";
import { translateSettings } from "./settings/settings.ts";
import { checkDestination, translateStatic } from "./static.ts";
import type { ServiceView } from "../shared/views.ts";

export type BackendContext = SecretCollections &
  McpServiceCollections &
  BackendCollections & {
    /** Reads remote JWKS, and collects the requests of this GwBackend for them. */
    readonly jwks: RemoteKeys;
  };

export interface TranslatedBackend {
  readonly id: ObjectId;
  readonly generation: number;
  readonly key: string;
  /** undefined when an error prevents sending it. */
  readonly resource: Resource | undefined;
  /** Keys of other Backends that this one references. */
  readonly uses: readonly string[];
  /** Names of providers and targets, which a policy can name as `sectionName`. */
  readonly sections: readonly string[];
  /** JWKS documents to fetch for it. */
  readonly remoteJwks: readonly RemoteJwksRequest[];
  readonly diagnostics: readonly Diagnostic[];
}

export function translateBackend(backend: GwBackend, context: BackendContext, read: Read): TranslatedBackend {
  const id = objectId(backend);
  const key = backendKey(id.namespace, id.name);
  const diagnostics: Diagnostic[] = [];
  const secrets = new SecretReader(context, read, id.namespace);
  const reporter =
    (usual: Diagnostic["severity"], prefix: string): Report =>
    (path, message, severity = usual) =>
      void diagnostics.push({
        code: "backend_invalid",
        severity,
        object: id,
        path: path === "" ? prefix : `${prefix}.${path}`,
        message,
      });
  const { view, unread } = trackAccess({ spec: backend.spec });
  const { spec } = view;
  const needs = new ServiceReader(context, read, id);
  const settingsContext = { secrets, services: needs, jwks: context.jwks };
  const { kind, uses = [] } = translateVariant(spec, {
    namespace: id.namespace,
    services: context.services,
    pools: context.pools,
    mcpServices: context.mcpServices,
    namespaces: context.namespaces,
    destinationScope: context.destinationScope,
    settings: settingsContext,
    read,
    reporter,
  });
  const settings = translateSettings(spec.policies, settingsContext, reporter("error", "spec.policies"));
  const isBroken = () => diagnostics.some(({ severity }) => severity === "error");
  // Check for unsupported fields only after a complete translation: one that stopped early has not read the rest
  // either.
  const unsupported = isBroken() ? [] : unsupportedFields("gwproxy.dev/GwBackend", unread(), []);
  for (const { path, message, failsClosed } of unsupported)
    reporter(failsClosed ? "error" : "warning", path)("", message);
  const broken = isBroken();
  const message = create(BackendSchema, {
    key,
    object: irRef(id),
    kind,
    ...(settings === undefined ? {} : { settings }),
  });
  return {
    id,
    generation: backend.metadata.generation ?? 0,
    key,
    resource: broken ? undefined : resourceOf("Backend", message),
    uses: broken ? [] : [...new Set([...uses, ...needs.uses])].sort(),
    sections: [
      ...(backend.spec.ai?.groups ?? []).flatMap((group) => group.providers.map((provider) => provider.name)),
      ...(backend.spec.mcp?.targets ?? []).map((target) => target.name),
    ],
    remoteJwks: context.jwks.requests,
    diagnostics,
  };
}

interface VariantContext extends McpServiceCollections {
  readonly namespace: string;
  readonly services: Readable<ServiceView>;
  readonly pools: PoolNames;
  readonly settings: FullSettingsContext;
  readonly destinationScope: DestinationScope;
  readonly read: Read;
  readonly reporter: (severity: Diagnostic["severity"], prefix: string) => Report;
}

interface Translated {
  readonly kind: Backend["kind"];
  readonly uses?: readonly string[];
}

const NOTHING: Translated = { kind: { case: undefined } };

/** One translator per variant. A variant added to the schema does not compile without an entry here. */
const VARIANTS: {
  readonly [K in GwBackendSpecKind]: (variant: NonNullable<GwBackendSpec[K]>, context: VariantContext) => Translated;
} = {
  static(variant, { destinationScope, reporter }) {
    const error = checkDestination(variant, destinationScope);
    if (error !== undefined) reporter("error", "spec.static")(error.path, error.message);
    return { kind: { case: "static", value: translateStatic(variant, destinationScope) } };
  },
  ai(variant, { reporter, ...context }) {
    const error = reporter("error", "spec.ai");
    const value = translateLlm(variant, { ...context, error, warning: reporter("warning", "spec.ai") });
    return { kind: { case: "ai", value }, uses: backendsOf(value) };
  },
  a2a(variant, { destinationScope, reporter }) {
    const error = checkDestination(variant, destinationScope);
    if (error !== undefined) reporter("error", "spec.a2a")(error.path, error.message);
    return { kind: { case: "a2a", value: translateA2a(variant, destinationScope) } };
  },
  dynamicForwardProxy: () => ({ kind: { case: "dynamic", value: create(DynamicBackendSchema) } }),
  cloudA({ agentRuntime }, { reporter }) {
    const error = reporter("error", "spec.cloudA");
    const value = agentRuntime === undefined ? undefined : translateAgentRuntime(agentRuntime, error);
    return value === undefined ? NOTHING : { kind: { case: "agentRuntime", value } };
  },
  mcp(variant, { reporter, ...context }) {
    const reports = { error: reporter("error", "spec.mcp"), warning: reporter("warning", "spec.mcp") };
    const value = translateMcp(variant, { ...context, ...reports });
    return { kind: { case: "mcp", value }, uses: servicesOf(value) };
  },
};

function translateVariant(spec: GwBackendSpec, context: VariantContext): Translated {
  for (const [name, translate] of Object.entries(VARIANTS)) {
    // Each entry translates the value stored under its own name.
    const variant = spec[name as GwBackendSpecKind];
    if (variant !== undefined)
      return (translate as (value: unknown, context: VariantContext) => Translated)(variant, context);
  }
  context.reporter("error", "spec")("", `one of ${Object.keys(VARIANTS).join(", ")} is required`);
  return NOTHING;
}
