/**
 * Computes the status of Gateways and ListenerSets (Gateway API, GEP-1364): their listeners, their deployment, and the
 * addresses that clients connect to. `compute.ts` uses it.
 *
 * A resource that a data plane refused sets `Programmed` to False/Invalid on its listener, and on the Gateway when no
 * listener is left that can serve.
 */
import { Condition, Reason } from "../api/conditions.ts";
import { nameKey } from "../api/refs.ts";
import type { GatewayStatusInput, ListenerSetStatusInput } from "../translator/shared/status-input.ts";
import type { ListenerView, Fault } from "../translator/shared/views.ts";
import { conditionsAt, refusedBy, type DeploymentState, type Make, type StatusContext } from "./condition.ts";
import type { DesiredCondition, DesiredListener, DesiredStatus } from "./desired.ts";

const CONFLICTS: ReadonlySet<Reason> = new Set([
  Reason.HostnameConflict,
  Reason.ProtocolConflict,
  Reason.BindModeConflict,
]);

export function computeGateway(input: GatewayStatusInput, { refusal, deployment }: StatusContext): DesiredStatus {
  const { id, generation, listeners, attached, attachedListenerSets, client, admitsUnverifiedClients } = input;
  const make = conditionsAt(generation);
  const refusals = new Map(
    listeners.map(({ name, key, bind }) => [name, refusal("Listener", key) ?? refusal("Bind", bind)]),
  );
  const state = deployment?.(nameKey(id));
  return {
    id,
    form: "keyed",
    attachedListenerSets,
    ...(state === undefined ? {} : { addresses: addressesOf(input, state) }),
    conditions: [
      gatewayAccepted(input, make),
      gatewayProgrammed(input, refusals, state, make),
      ...(client === undefined ? [] : [clientCondition(client.fault, make)]),
      ...(admitsUnverifiedClients ? [unverifiedClients(make)] : []),
    ],
    listeners: listeners.map((listener) =>
      computeListener(listener, attached.get(listener.key) ?? 0, refusals.get(listener.name), make),
    ),
  };
}

function gatewayAccepted({ fault, listeners }: GatewayStatusInput, make: Make): DesiredCondition {
  if (fault !== undefined) return make(Condition.Accepted, false, fault.reason, fault.message);
  const bad = listeners.filter((listener) => refusalOf(listener) !== undefined);
  if (bad.length === 0) return make(Condition.Accepted, true, Reason.Accepted, "all listeners are valid");
  const message = bad.map((listener) => `listener ${listener.name}: ${refusalOf(listener)?.message}`).join("; ");
  return make(Condition.Accepted, bad.length < listeners.length, Reason.ListenersNotValid, message);
}

/** Returns why a listener is not accepted, or undefined when it is. */
function refusalOf({ fault, trustFault }: ListenerView): Fault | undefined {
  return fault ?? trustFault;
}

function gatewayProgrammed(
  { fault, addressFault, address, listeners }: GatewayStatusInput,
  refusals: ReadonlyMap<string, string | undefined>,
  state: DeploymentState | undefined,
  make: Make,
): DesiredCondition {
  const refused = [...refusals].flatMap(([name, reason]) =>
    reason === undefined ? [] : [`listener ${name}: ${refusedBy(reason)}`],
  );
  const say = (status: boolean, reason: Reason, message: string): DesiredCondition =>
    make(Condition.Programmed, status, reason, [message, ...refused].join("; "));
  if (fault !== undefined) return say(false, Reason.Invalid, "the Gateway is not accepted");
  const unserved = listeners.filter((one) => one.fault !== undefined || refusals.get(one.name) !== undefined);
  if (unserved.length > 0 && unserved.length === listeners.length)
    return say(false, Reason.Invalid, "no listener can serve");
  if (addressFault !== undefined) return say(false, addressFault.reason, addressFault.message);
  if (state?.failure !== undefined) return say(false, Reason.DeploymentFailed, state.failure);
  if (state !== undefined && !isReachable(state, address)) {
    const wanted = address === undefined ? "an address" : `the address ${address}`;
    return say(false, Reason.AddressNotAssigned, `the Service has not been given ${wanted} yet`);
  }
  return say(true, Reason.Programmed, "configuration is sent to data planes");
}

function isReachable({ addresses }: DeploymentState, wanted: string | undefined): boolean {
  return wanted === undefined ? addresses.length > 0 : addresses.some(({ value }) => value === wanted);
}

/** Returns the addresses to publish. While the requested address is not assigned, another one would mislead clients. */
function addressesOf({ address }: GatewayStatusInput, state: DeploymentState): DeploymentState["addresses"] {
  return isReachable(state, address) ? state.addresses : [];
}

function clientCondition(fault: Fault | undefined, make: Make): DesiredCondition {
  if (fault !== undefined) return make(Condition.ResolvedRefs, false, fault.reason, fault.message);
  return make(Condition.ResolvedRefs, true, Reason.ResolvedRefs, "all references are resolved");
}

function unverifiedClients(make: Make): DesiredCondition {
  const message = "AllowInsecureFallback lets clients in without a certificate that is trusted";
  return make(Condition.InsecureFrontendValidationMode, true, Reason.ConfigurationChanged, message);
}

export function computeListenerSet(
  { id, generation, gateway, allowed, listeners, attached }: ListenerSetStatusInput,
  { refusal }: StatusContext,
): DesiredStatus {
  const make = conditionsAt(generation);
  // Unlike a Gateway, a ListenerSet is not valid when its certificates cannot be read (GEP-1713).
  const bad = listeners.flatMap((listener) => {
    const fault = refusalOf(listener) ?? listener.tlsFault;
    return fault === undefined ? [] : [`listener ${listener.name}: ${fault.message}`];
  });
  const both = (status: boolean, reason: Reason, message: string): DesiredCondition[] =>
    [Condition.Accepted, Condition.Programmed].map((type) => make(type, status, reason, message));
  const conditions = (): DesiredCondition[] => {
    if (!allowed) return both(false, Reason.NotAllowed, `Gateway ${gateway} does not take ListenerSets from here`);
    const message = bad.join("; ");
    if (bad.length > 0 && bad.length === listeners.length) return both(false, Reason.ListenersNotValid, message);
    return [
      bad.length === 0
        ? make(Condition.Accepted, true, Reason.Accepted, "all listeners are valid")
        : make(Condition.Accepted, true, Reason.ListenersNotValid, message),
      make(Condition.Programmed, true, Reason.Programmed, "configuration is sent to data planes"),
    ];
  };
  return {
    id,
    form: "keyed",
    conditions: conditions(),
    listeners: listeners.map((listener) => {
      const refused = refusal("Listener", listener.key) ?? refusal("Bind", listener.bind);
      return computeListener(listener, attached.get(listener.key) ?? 0, refused, make);
    }),
  };
}

function computeListener(
  listener: ListenerView,
  attachedRoutes: number,
  refusal: string | undefined,
  make: Make,
): DesiredListener {
  const { name, supportedKinds, fault, tlsFault, kindFault } = listener;
  const refused = refusalOf(listener);
  const refFault = tlsFault ?? kindFault;
  const conflict = fault !== undefined && CONFLICTS.has(fault.reason);
  const programmed = (): DesiredCondition => {
    if (fault !== undefined)
      return make(Condition.Programmed, false, conflict ? fault.reason : Reason.Invalid, fault.message);
    if (tlsFault !== undefined) return make(Condition.Programmed, false, Reason.Invalid, tlsFault.message);
    if (refusal !== undefined) return make(Condition.Programmed, false, Reason.Invalid, refusedBy(refusal));
    return make(Condition.Programmed, true, Reason.Programmed, "the listener is sent to data planes");
  };
  return {
    name,
    attachedRoutes,
    supportedKinds,
    conditions: [
      refused === undefined
        ? make(Condition.Accepted, true, Reason.Accepted, "the listener is valid")
        : make(Condition.Accepted, false, refused.reason, refused.message),
      programmed(),
      conflict
        ? make(Condition.Conflicted, true, fault.reason, fault.message)
        : make(Condition.Conflicted, false, Reason.NoConflicts, "no other listener is in the way"),
      refFault === undefined
        ? make(Condition.ResolvedRefs, true, Reason.ResolvedRefs, "all references are resolved")
        : make(Condition.ResolvedRefs, false, refFault.reason, refFault.message),
    ],
  };
}
