/**
 * Declares which collection is derived from which, and nothing else; `translate.ts` runs the result. Each `declare…`
 * adds its collections in the order in which they are computed.
 *
 * The graph (`src/lib/collections`) is incremental: each derivation records what it reads, and a change recomputes only
 * the values that read something that changed. A derivation must therefore get everything through `read` or its own
 * arguments; a value from elsewhere would go stale without notice.
 *
 *     inputs ──▶ routing ───────▶ contents ───────▶ destinations ────▶ policies
 *                gateways,        units of each     backends, services  targets of each
 *                listeners,       policy, and the   and the Gateways    policy, and its
 *                routes           services it calls that need them      resources
 *
 * This order breaks a cycle: a policy may call a backend, and may also be attached to one. Contents come first and use
 * only Gateways and routes as targets; with them destinations find the Gateways that need them; then policies on
 * destinations resolve.
 */
import { DestinationScope } from "../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import type { GRPCRoute } from "../../generated/types/gateway-api/grpcroute.ts";
import type { HTTPRoute } from "../../generated/types/gateway-api/httproute.ts";
import type { TCPRoute } from "../../generated/types/gateway-api/tcproute.ts";
import type { TLSRoute } from "../../generated/types/gateway-api/tlsroute.ts";
import { type KubeObject, type ObjectId, objectId } from "../api/object.ts";
import { createdAtMs } from "../api/refs.ts";
import { policyKey } from "../ir/keys.ts";
import type { Collection, Readable } from "../lib/collections/collection.ts";
import { deepEqual } from "../lib/deep-equal.ts";
import { Graph, type Input } from "../lib/collections/graph.ts";
import type { ReadableGroups } from "../lib/collections/groups.ts";
import { declareBackendTls } from "./backends/backend-tls/declare.ts";
import { targetNames } from "./backends/backend-tls/targets.ts";
import { declareDestinationVisibility } from "./policies/destination-visibility.ts";
import { indexMcpServices, viewMcpService } from "./backends/mcp-targets.ts";
import { translateBackend } from "./backends/translate.ts";
import type { JwksRequest } from "../sources/remote/documents.ts";
import { translateEndpoints } from "./backends/endpoints.ts";
import { declarePoolResources, declarePools } from "./backends/declare-pools.ts";
import type { ObjectStatusInput, StatusInput } from "./shared/status-input.ts";
import { translateGateway } from "./gateways/gateway.ts";
import { declareGatewayStatusInputs } from "./gateways/declare-status-inputs.ts";
import type { GatewayView } from "./shared/views.ts";
import { declareInputs, type Inputs } from "./inputs.ts";
import { indexByLabels } from "./references/label-index.ts";
import { gatewayOfSet, setsOfGateway } from "./gateways/listener-set.ts";
import { declareModelCandidates, declareModels, type Models } from "./models/declare.ts";
import { declareParameters } from "./parameters/declare.ts";
import type { ScopedResource } from "./shared/resource-store.ts";
import { translateContent } from "./policies/content.ts";
import { failClosedContent, readableTargets } from "./policies/fail-closed.ts";
import { findUnusedOnPools, indexProviders } from "./policies/pool-targets.ts";
import { declareOverridden, NOT_OVERRIDDEN } from "./policies/overridden/declare.ts";
import { enforces, policyResource } from "./policies/policy-resource.ts";
import { gatewaysOfTargets, resolveTargets } from "./policies/target.ts";
import { gatewaysByUse } from "./references/visibility.ts";
import { declareModelCatalogs } from "./gateways/model-catalog.ts";
import { declareDeploymentPlans, type DeploymentPlan } from "./gateways/deployment-plan.ts";
import { indexBackendPolicies } from "./references/policies-on-backends.ts";
import { declareDocuments } from "./policies/jwks/documents.ts";
import { JwksReader } from "./policies/jwks/remote-jwks.ts";
import {
  declareAttachments,
  declareAttachmentCandidates,
  declareHostnameConflicts,
} from "./routes/hostname-conflicts.ts";
import { declareDelegation } from "./routes/delegation/declare.ts";
import { declareRouteKind } from "./routes/route-kind.ts";
import { translateGrpcRoute } from "./routes/grpc.ts";
import { translateHttpRoute } from "./routes/http.ts";
import { translateTcpRoute } from "./routes/tcp.ts";
import { declareScopedResources, scopeByPort, scopeTo } from "./shared/scoped-resources.ts";
import { serviceOfSlice, translateServiceBackends, viewService } from "./backends/service.ts";
import type { TranslatorOptions } from "./translator.ts";

export interface TranslatorGraph {
  readonly graph: Graph;
  readonly inputs: Inputs;
  readonly gateways: Collection<GatewayView>;
  readonly deploymentPlans: Collection<DeploymentPlan>;
  /** Resources that each object contributes, with the Gateways they go to. */
  readonly scopedResources: readonly Collection<readonly ScopedResource[]>[];
  /** JWKS documents to fetch for each policy and for each GwBackend. */
  readonly documents: readonly Collection<readonly JwksRequest[]>[];
  /** Input for status, by the kind of the object. */
  readonly statusInputs: Readonly<Record<StatusInput["kind"], Collection<StatusInput>>>;
  /** Diagnostics of kinds that have no status to hold them. */
  readonly unreportedDiagnostics: Readonly<
    Record<Exclude<ObjectStatusInput["kind"], StatusInput["kind"]>, Collection<ObjectStatusInput>>
  >;
}

export function declareGraph(options: TranslatorOptions): TranslatorGraph {
  const graph = new Graph();
  const inputs = declareInputs(graph);
  const routing = declareRouting(graph, inputs, options);
  const models = declareModels(graph, {
    ...routing,
    candidates: routing.modelCandidates,
    models: inputs.models,
    httpRoutes: inputs.httpRoutes,
    references: { ...routing.secrets, ...routing.referable },
  });
  const contents = declareContents(graph, inputs, routing);
  const destinations = declareDestinations(graph, inputs, { ...routing, ...contents, models });
  const policies = declarePolicies(graph, inputs, { ...routing, ...contents, ...destinations, models });
  return {
    graph,
    inputs,
    gateways: routing.gateways,
    deploymentPlans: routing.deploymentPlans,
    documents: [contents.documents, destinations.documents],
    scopedResources: [
      ...routing.scopedResources,
      ...models.scopedResources,
      ...destinations.scopedResources,
      ...policies.scopedResources,
    ],
    statusInputs: {
      ...routing.statusInputs,
      ...destinations.statusInputs,
      ...policies.statusInputs,
      GwModel: models.statusInputs,
    },
    unreportedDiagnostics: { GwParameters: declareParameters(graph, inputs.parameters) },
  };
}

function declareRouting(graph: Graph, inputs: Inputs, options: TranslatorOptions) {
  const { controllerName, implicitClass, grantMode = "route" } = options;
  const { destinationScope = DestinationScope.UNSPECIFIED } = options;
  const services = graph.derive("service views", inputs.services, (_key, service) => viewService(service));
  const backendNames = graph.derive("backend names", inputs.backends, () => true);
  const { inferencePools } = options;
  const poolNames = inferencePools && graph.derive("pool names", inputs.pools, () => true);
  const secrets = {
    secrets: inputs.secrets,
    configMaps: inputs.configMaps,
    secretsByLabels: indexByLabels(inputs.secrets),
    configMapsByLabels: indexByLabels(inputs.configMaps),
  };
  const grants = inputs.grants.index(({ metadata }) => [metadata.namespace ?? ""]);
  const classes = graph.derive("class owners", inputs.classes, (_key, { spec }) => spec.controllerName);
  const sets = {
    setsByGateway: inputs.listenerSets.index((set) => [gatewayOfSet(set) ?? ""]),
    namespaces: inputs.namespaces,
  };
  const gateways = graph.derive("gateway views", inputs.gateways, (_key, gateway, read) => {
    const name = gateway.spec.gatewayClassName;
    const owner = read.get(classes, name) ?? (name === implicitClass ? controllerName : undefined);
    if (owner !== controllerName) return undefined;
    return translateGateway(gateway, setsOfGateway(gateway, sets, read), { secrets, grants, read });
  });
  const ofGateways = { gateways: inputs.gateways, parameters: inputs.parameters, views: gateways };
  const plans = declareDeploymentPlans(graph, { ...ofGateways, classes, classObjects: inputs.classes });
  const modelCatalogs = declareModelCatalogs(graph, { ...ofGateways, secrets });
  const listenerSets = graph.derive("listener set views", inputs.listenerSets, (_key, set, read) => {
    const gateway = read.get(gateways, gatewayOfSet(set) ?? "");
    return gateway?.sets.find(({ id }) => deepEqual(id, objectId(set)));
  });
  const allGateways: Readable<KubeObject> = inputs.gateways;
  const allListenerSets: Readable<KubeObject> = inputs.listenerSets;
  const attach = { gateways, allGateways, listenerSets, allListenerSets, namespaces: inputs.namespaces };
  const policiesByBackend = indexBackendPolicies(inputs.policies);
  const objects = { backendObjects: inputs.backends, serviceObjects: inputs.services, policiesByBackend };
  const names = { services, backends: backendNames, pools: poolNames };
  const referable = { ...names, grants, grantMode, destinationScope, ...objects };
  const httpCandidates = declareAttachmentCandidates(graph, { kind: "HTTPRoute", input: inputs.httpRoutes, attach });
  const grpcCandidates = declareAttachmentCandidates(graph, { kind: "GRPCRoute", input: inputs.grpcRoutes, attach });
  const modelCandidates = declareModelCandidates(graph, inputs.models, attach);
  const conflicts = declareHostnameConflicts(graph, gateways, [httpCandidates, grpcCandidates]);
  const httpAttachments = declareAttachments(graph, httpCandidates, conflicts);
  const delegation = declareDelegation(graph, inputs.httpRoutes, httpAttachments, { grants, grantMode });
  const http = declareRouteKind<HTTPRoute>(graph, {
    kind: "HTTPRoute",
    input: inputs.httpRoutes,
    attachments: delegation.attachments,
    translate: (route, parents, context, read) =>
      translateHttpRoute(route, parents, { ...context, delegation, directModels: modelCandidates.byListener }, read),
    backends: referable,
  });
  const grpc = declareRouteKind<GRPCRoute>(graph, {
    kind: "GRPCRoute",
    input: inputs.grpcRoutes,
    attachments: declareAttachments(graph, grpcCandidates, conflicts),
    translate: translateGrpcRoute,
    backends: referable,
  });
  const declareBytes = <R extends TCPRoute | TLSRoute>(kind: "TCPRoute" | "TLSRoute", input: Input<R>) => {
    const attachments = declareAttachmentCandidates(graph, { kind, input, attach }).parents;
    return declareRouteKind<R>(graph, { kind, input, attachments, translate: translateTcpRoute, backends: referable });
  };
  const tcp = declareBytes("TCPRoute", inputs.tcpRoutes);
  const tls = declareBytes("TLSRoute", inputs.tlsRoutes);
  const routes = [http, grpc, tcp, tls];
  const scopedResources = [
    modelCatalogs.scopedResources,
    declareScopedResources(graph, "resources of gateways", gateways, (_key, { key, resources }) =>
      resources.map((resource) => ({ resource, gateways: [key] })),
    ),
    ...routes.map((kind) => kind.scopedResources),
  ];
  const statusInputs = {
    GatewayClass: graph.derive("class status inputs", inputs.classes, (_key, object): StatusInput | undefined =>
      object.spec.controllerName === controllerName ? { kind: "GatewayClass", ...identify(object) } : undefined,
    ),
    ...declareGatewayStatusInputs(graph, {
      gateways,
      listenerSets,
      gatewayObjects: inputs.gateways,
      listenerSetObjects: inputs.listenerSets,
      plans,
      catalogs: modelCatalogs.catalogs,
      routes,
    }),
    HTTPRoute: http.statusInputs,
    GRPCRoute: grpc.statusInputs,
    TCPRoute: tcp.statusInputs,
    TLSRoute: tls.statusInputs,
  };
  const { attachments } = http;
  const routeVisibilities = { HTTPRoute: http.visibility, GRPCRoute: grpc.visibility };
  const policyRoutes = { HTTPRoute: http, GRPCRoute: grpc };
  return {
    secrets,
    services,
    inferencePools,
    gateways,
    deploymentPlans: plans,
    allGateways,
    listenerSets,
    attachments,
    routeVisibilities,
    policyRoutes,
    routes,
    referable,
    modelCandidates,
    scopedResources,
    statusInputs,
  };
}

type Routing = ReturnType<typeof declareRouting>;

/**
 * Declares the content of policies. It comes before destinations, because a service that a policy calls has to be known
 * on every Gateway that the policy applies to.
 */
function declareContents(
  graph: Graph,
  inputs: Inputs,
  { secrets, services, gateways, allGateways, listenerSets, routeVisibilities, referable }: Routing,
) {
  const byLabels = {
    Gateway: indexByLabels(inputs.gateways),
    ListenerSet: indexByLabels(inputs.listenerSets),
    HTTPRoute: indexByLabels(inputs.httpRoutes),
    GRPCRoute: indexByLabels(inputs.grpcRoutes),
    Service: indexByLabels(inputs.services),
    GwBackend: indexByLabels(inputs.backends),
    InferencePool: indexByLabels(inputs.pools),
  };
  const jwksCollections = {
    documents: inputs.documents,
    tlsPoliciesByTarget: inputs.backendTlsPolicies.index(targetNames),
  };
  const contents = graph.derive("policy contents", inputs.policies, (_key, policy, read) =>
    translateContent(policy, { ...secrets, ...referable, ...jwksCollections }, read),
  );
  const slicesByService = inputs.slices.index(serviceOfSlice);
  const documents = declareDocuments(graph, "documents of policies", contents, { services, slicesByService });
  const routingTargets = { gateways, allGateways, listenerSets, routes: routeVisibilities, byLabels };
  const policyGateways = graph.derive("policy gateways", inputs.policies, (key, { spec, metadata }, read) => {
    const uses = read.get(contents, key)?.uses ?? [];
    if (uses.length === 0) return undefined;
    return { gateways: gatewaysOfTargets(spec, metadata.namespace ?? "", routingTargets, read), uses };
  });
  return { contents, documents, policyGateways, routingTargets, slicesByService, jwksCollections };
}

type Contents = ReturnType<typeof declareContents>;

function declareDestinations(graph: Graph, inputs: Inputs, context: Routing & Contents & { readonly models: Models }) {
  const { services, routes, policyGateways, slicesByService, contents, jwksCollections } = context;
  const byPolicies = policyGateways.groups(({ uses, gateways }) => gatewaysByUse(uses, gateways));
  const callers: ReadableGroups[] = [
    ...routes.map((kind) => kind.gatewaysByBackend),
    context.models.gatewaysByBackend,
    byPolicies,
  ];
  const mcpServices = indexMcpServices(
    graph.derive("MCP services", inputs.services, (_key, service) => viewMcpService(service)),
  );
  const backends = graph.derive("backends", inputs.backends, (_key, backend, read) => {
    const collections = { ...context.secrets, ...context.referable };
    const jwks = new JwksReader({ ...collections, ...jwksCollections }, read, objectId(backend));
    return translateBackend(backend, { ...collections, mcpServices, namespaces: inputs.namespaces, jwks }, read);
  });
  const documents = declareDocuments(graph, "documents of backends", backends, { services, slicesByService });
  const pools = declarePools(graph, inputs, services, context.inferencePools);
  const visibility = declareDestinationVisibility(graph, {
    backends,
    pools,
    services,
    backendObjects: inputs.backends,
    poolObjects: inputs.pools,
    serviceObjects: inputs.services,
    callers,
    contents,
    policiesByBackend: context.referable.policiesByBackend,
  });
  const { backendVisibility, poolVisibility, serviceVisibility } = visibility;
  const poolOptions = { pools, poolVisibility, mode: context.inferencePools };
  const poolResources = declarePoolResources(graph, inputs, poolOptions);
  const scopedResources = [
    declareScopedResources(graph, "resources of backends", backends, (key, { resource }, read) =>
      resource === undefined ? [] : scopeTo(read.get(backendVisibility, key)?.gateways, [resource]),
    ),
    ...poolResources.scopedResources,
    declareScopedResources(graph, "resources of services", services, (key, service, read) =>
      scopeByPort(translateServiceBackends(service), read.get(serviceVisibility, key)),
    ),
    declareScopedResources(graph, "resources of endpoints", services, (key, service, read) => {
      const slices = read.byIndex(slicesByService, key).map(({ value }) => value);
      return scopeByPort(translateEndpoints(service, slices), read.get(serviceVisibility, key));
    }),
  ];
  const statusInputs = {
    GwBackend: graph.derive("backend status inputs", backends, (_key, backend): StatusInput => {
      const { id, generation, key, diagnostics, resource } = backend;
      return { kind: "GwBackend", id, generation, key, accepted: resource !== undefined, diagnostics };
    }),
    InferencePool: poolResources.statusInputs,
  };
  return { backends, pools, documents, ...visibility, scopedResources, statusInputs };
}

type Destinations = ReturnType<typeof declareDestinations>;

function declarePolicies(
  graph: Graph,
  inputs: Inputs,
  context: Omit<Routing & Contents & Destinations, "scopedResources" | "statusInputs"> & { readonly models: Models },
) {
  const { contents, routingTargets, secrets } = context;
  const targetContext = { ...context, ...routingTargets };
  const targets = graph.derive("policy targets", inputs.policies, (_key, { spec, metadata }, read) =>
    resolveTargets(spec, metadata.namespace ?? "", targetContext, read),
  );
  const policyResources = declareScopedResources(graph, "resources of policies", inputs.policies, (key, policy, read) =>
    policyResource(objectId(policy), createdAtMs(policy), read.get(contents, key), read.get(targets, key)),
  );
  const rejected = declareScopedResources(graph, "rejected policies", inputs.refused, (_key, { id, object }, read) => {
    const resolution = resolveTargets(readableTargets(object), id.namespace, targetContext, read);
    return policyResource(id, 0, failClosedContent(), resolution);
  });
  const overridden = declareOverridden(graph, inputs.policies, { ...context, targets });
  const providers = indexProviders(context.backends, context.models.translated);
  const statusInputs = {
    GwPolicy: graph.derive("policy status inputs", inputs.policies, (key, policy, read): StatusInput => {
      const id = identify(policy);
      const content = read.get(contents, key);
      const { gateways = [], errors: targetErrors = [], targets: places = [] } = read.get(targets, key) ?? {};
      const unused = findUnusedOnPools(id.id, content, places, { pools: context.pools, providers, read });
      return {
        kind: "GwPolicy",
        ...id,
        key: policyKey(id.id.namespace, id.id.name),
        gateways,
        targetErrors,
        diagnostics: [...(content?.diagnostics ?? []), ...unused],
        produced: content !== undefined && enforces(content),
        overriding: read.get(overridden, key) ?? NOT_OVERRIDDEN,
      };
    }),
  };
  const tls = declareBackendTls(graph, inputs.backendTlsPolicies, { ...targetContext, secrets });
  return {
    scopedResources: [policyResources, rejected, tls.scopedResources],
    statusInputs: { ...statusInputs, BackendTLSPolicy: tls.statusInputs },
  };
}

function identify(object: KubeObject): { readonly id: ObjectId; readonly generation: number } {
  return { id: objectId(object), generation: object.metadata.generation ?? 0 };
}
