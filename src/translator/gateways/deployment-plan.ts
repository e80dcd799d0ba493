/**
 * Computes the deployment plan of each Gateway: its ports, its address, the labels and annotations of its
 * infrastructure (Gateway API `spec.addresses`; `spec.infrastructure`, GEP-1867), and its GwParameters.
 *
 * In: the Gateways of this controller. Out: deployment plans for `src/deployer`, and errors of a Gateway as a whole for
 * its status. The Kubernetes objects of a plan are rendered in `src/deployer`.
 */
import type { Gateway, GatewaySpecAddress } from "../../../generated/types/gateway-api/gateway.ts";
import type { GatewayClass } from "../../../generated/types/gateway-api/gatewayclass.ts";
import type { GwParameters } from "../../../generated/types/parameters.ts";
import { Reason } from "../../api/conditions.ts";
import { objectId, type ObjectId } from "../../api/object.ts";
import { GATEWAY_GROUP } from "../../api/refs.ts";
import type { Collection, Readable } from "../../lib/collections/collection.ts";
import type { Graph, Input } from "../../lib/collections/graph.ts";
import { isIpAddress } from "../../lib/network/ip-bytes.ts";
import { NO_PARAMETERS, type DeploymentParameters } from "../parameters/merge.ts";
import { resolveParameters, type ResolvedParameters } from "../parameters/resolve.ts";
import type { GatewayView, ConditionError } from "../shared/views.ts";

export interface DeploymentPlan {
  readonly gateway: ObjectId;
  /** Distinguishes the Gateway from an earlier one of the same name; "" when objects come from files. */
  readonly uid: string;
  readonly className: string;
  /** The class belongs to another controller, so objects deployed for this Gateway are deleted. */
  readonly isForeign: boolean;
  /** Ports that clients connect to, ascending and without duplicates. */
  readonly ports: readonly number[];
  /** Labels for every object that is deployed for the Gateway. */
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
  /** Its GwParameters and those of its class, merged. */
  readonly parameters: DeploymentParameters;
  /** The requested IP address; undefined when any address will do. */
  readonly address: string | undefined;
  /** Explains why the Gateway is not accepted. Its deployment is then neither created nor changed. */
  readonly error: ConditionError | undefined;
  /** Explains why the requested address cannot be used. The deployment is then neither created nor changed. */
  readonly addressError: ConditionError | undefined;
}

/**
 * Prefix of labels that gwproxy itself sets, such as "gateway.networking.k8s.io/gateway-name", to record which Gateway
 * an object was made for. A Gateway cannot override them.
 */
const MANAGED_KEYS = `${GATEWAY_GROUP}/`;

interface DeploymentPlanInputs {
  readonly gateways: Input<Gateway>;
  readonly parameters: Readable<GwParameters>;
  /** Views of the Gateways that belong to this controller. */
  readonly views: Readable<GatewayView>;
  /** Controller names, keyed by GatewayClass. */
  readonly classes: Readable<string>;
  readonly classObjects: Input<GatewayClass>;
}

export function declareDeploymentPlans(
  graph: Graph,
  { gateways, parameters, views, classes, classObjects }: DeploymentPlanInputs,
): Collection<DeploymentPlan> {
  const classParameters = graph.derive("class parameters", classObjects, (_key, { spec }) => spec.parametersRef);
  return graph.derive("deployment plans", gateways, (key, gateway, read) => {
    const view = read.get(views, key);
    if (view !== undefined) {
      const classRef = read.get(classParameters, gateway.spec.gatewayClassName);
      return planOf(
        gateway,
        view,
        resolveParameters(gateway, classRef, (name) => read.get(parameters, name)),
      );
    }
    // A missing class may be gone only for a moment and does not show which controller owns its Gateways, so make no
    // plan.
    return read.get(classes, gateway.spec.gatewayClassName) === undefined ? undefined : foreignPlan(gateway);
  });
}

function foreignPlan(gateway: Gateway): DeploymentPlan {
  const view = { id: objectId(gateway), listeners: [], sets: [], error: undefined };
  const resolved = { parameters: NO_PARAMETERS, error: undefined };
  // The other controller reports the errors of this Gateway.
  return { ...planOf(gateway, view, resolved), isForeign: true, error: undefined, addressError: undefined };
}

function planOf(
  { metadata, spec }: Gateway,
  { id, listeners, sets, error: viewError }: Pick<GatewayView, "id" | "listeners" | "sets" | "error">,
  { parameters, error: parametersError }: ResolvedParameters,
): DeploymentPlan {
  const all = [...listeners, ...sets.flatMap((set) => set.listeners)];
  const serving = all.filter((listener) => listener.error === undefined && !listener.internal);
  const { addresses = [], infrastructure = {} } = spec;
  const { error, addressError } = addressErrors(addresses);
  return {
    gateway: id,
    uid: metadata.uid ?? "",
    className: spec.gatewayClassName,
    isForeign: false,
    ports: [...new Set(serving.map(({ port }) => port))].sort((a, b) => a - b),
    labels: withoutManaged(infrastructure.labels),
    annotations: withoutManaged(infrastructure.annotations),
    address: addresses.find(({ value = "" }) => value !== "")?.value,
    parameters,
    error: viewError ?? error ?? parametersError,
    addressError,
  };
}

/** Checks `spec.addresses`: a Service of type LoadBalancer takes one address, and it must be an IP address. */
function addressErrors(addresses: readonly GatewaySpecAddress[]): {
  readonly error?: ConditionError;
  readonly addressError?: ConditionError;
} {
  const typed = addresses.map(({ type = "IPAddress", value = "" }, at) => ({ type, value, at }));
  const unknown = typed.find(({ type }) => type !== "IPAddress" && type !== "Hostname");
  if (unknown !== undefined) {
    const message = `spec.addresses[${unknown.at}].type: "${unknown.type}" is not known; use IPAddress`;
    return { error: { reason: Reason.UnsupportedAddress, message } };
  }
  const host = typed.find(({ type }) => type === "Hostname");
  if (host !== undefined) {
    const message = `spec.addresses[${host.at}]: a hostname cannot be assigned; use an IPAddress`;
    return { addressError: { reason: Reason.AddressNotUsable, message } };
  }
  if (typed.length > 1) {
    const message = "spec.addresses: one address can be assigned, and there are several";
    return { error: { reason: Reason.InvalidParameters, message } };
  }
  const bad = typed.find(({ value }) => value !== "" && !isIpAddress(value));
  if (bad === undefined) return {};
  const message = `spec.addresses[${bad.at}].value: "${bad.value}" is not an IP address`;
  return { error: { reason: Reason.InvalidParameters, message } };
}

function withoutManaged(map: Readonly<Record<string, string>> = {}): Readonly<Record<string, string>> {
  return Object.fromEntries(Object.entries(map).filter(([key]) => !key.startsWith(MANAGED_KEYS)));
}
