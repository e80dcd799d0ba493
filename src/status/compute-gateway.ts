/**
 * Computes the status of Gateways and ListenerSets (Gateway API, GEP-1364): their listeners, their deployment, and the
 * addresses that clients connect to. `compute.ts` uses it. A Gateway is programmed when it can be reached: its Service
 * has an address, and a data plane has acknowledged its listeners.
 *
 * A resource that a data plane refused sets `Programmed` to False/Invalid on its listener, and on the Gateway when no
 * listener is left that can serve. A source of the model catalog that is missing or refused is named in the message.
 */
import { Condition, Reason } from "../api/conditions.ts";
import { nameKey } from "../api/refs.ts";
import type { GatewayStatusInput, ListenerSetStatusInput } from "../translator/shared/status-input.ts";
import type { ListenerView, ConditionError } from "../translator/shared/views.ts";
import { conditionsAt, refusedBy, type DeploymentState, type Make, type StatusContext } from "./condition.ts";
import type { DesiredCondition, DesiredListener, DesiredStatus } from "./desired.ts";

const NOT_CONNECTED = "no data plane is connected";

/** What a listener waits for. */
interface Pending {
  readonly pending: string;
}

const CONFLICTS: ReadonlySet<Reason> = new Set([
  Reason.HostnameConflict,
  Reason.ProtocolConflict,
  Reason.BindModeConflict,
]);

export function computeGateway(input: GatewayStatusInput, context: StatusContext): DesiredStatus {
  const { nackReason, deployment, hasDataPlane } = context;
  const { id, generation, listeners, attached, attachedListenerSets, client, admitsUnverifiedClients } = input;
  const make = conditionsAt(generation);
  const nackReasons = new Map(
    listeners.map(({ name, key, bind }) => [name, nackReason("Listener", key) ?? nackReason("Bind", bind)]),
  );
  const catalogFaults = input.catalogSources.flatMap(({ key, name, error }) => {
    const reason = error ?? nackReason("ModelCatalogSource", key);
    return reason === undefined ? [] : [`model catalog ${name}: ${error === undefined ? refusedBy(reason) : reason}`];
  });
  const state = deployment?.(nameKey(id));
  // Data planes that go away later change nothing: what they have acknowledged is in force when they come back.
  const isServed = input.programmed.whole || state?.hasReadyPods === true || hasDataPlane(nameKey(id));
  return {
    id,
    form: "keyed",
    attachedListenerSets,
    ...(state === undefined ? {} : { addresses: addressesOf(input, state) }),
    conditions: [
      gatewayAccepted(input, make),
      gatewayProgrammed(input, { nackReasons, catalogFaults }, { deployed: state, isServed }, make),
      ...(client === undefined ? [] : [clientCondition(client.error, make)]),
      ...(admitsUnverifiedClients ? [unverifiedClients(make)] : []),
    ],
    listeners: listeners.map((listener) => {
      const missing = nackReasons.get(listener.name) ?? missingAt(listener, nameKey(id), input, context);
      return computeListener(listener, attached.get(listener.key) ?? 0, missing, make);
    }),
  };
}

function gatewayAccepted({ error, listeners }: GatewayStatusInput, make: Make): DesiredCondition {
  if (error !== undefined) return make(Condition.Accepted, false, error.reason, error.message);
  const bad = listeners.filter((listener) => acceptanceError(listener) !== undefined);
  if (bad.length === 0) return make(Condition.Accepted, true, Reason.Accepted, "all listeners are valid");
  const message = bad.map((listener) => `listener ${listener.name}: ${acceptanceError(listener)?.message}`).join("; ");
  return make(Condition.Accepted, bad.length < listeners.length, Reason.ListenersNotValid, message);
}

/** Returns why a listener is not accepted, or undefined when it is. */
function acceptanceError({ error, trustError }: ListenerView): ConditionError | undefined {
  return error ?? trustError;
}

interface Refused {
  /** Why a data plane refused each listener, by name. */
  readonly nackReasons: ReadonlyMap<string, string | undefined>;
  /** Sources of the model catalog that are missing or refused; their last good version stays in force. */
  readonly catalogFaults: readonly string[];
}

function gatewayProgrammed(
  { error, addressError, address, listeners }: GatewayStatusInput,
  { nackReasons, catalogFaults }: Refused,
  { deployed: state, isServed }: { readonly deployed: DeploymentState | undefined; readonly isServed: boolean },
  make: Make,
): DesiredCondition {
  const refused = [
    ...[...nackReasons].flatMap(([name, reason]) =>
      reason === undefined ? [] : [`listener ${name}: ${refusedBy(reason)}`],
    ),
    ...catalogFaults,
  ];
  const say = (status: boolean, reason: Reason, message: string): DesiredCondition =>
    make(Condition.Programmed, status, reason, [message, ...refused].join("; "));
  if (error !== undefined) return say(false, Reason.Invalid, "the Gateway is not accepted");
  const unserved = listeners.filter((one) => one.error !== undefined || nackReasons.get(one.name) !== undefined);
  if (unserved.length > 0 && unserved.length === listeners.length)
    return say(false, Reason.Invalid, "no listener can serve");
  if (addressError !== undefined) return say(false, addressError.reason, addressError.message);
  if (state?.failure !== undefined) return say(false, Reason.DeploymentFailed, state.failure);
  if (state !== undefined && address !== undefined && !isReachable(state, address))
    return say(false, Reason.AddressNotAssigned, `the Service has not been given the address ${address} yet`);
  const missing = [...(state?.addresses.length === 0 ? ["no address yet"] : []), ...(isServed ? [] : [NOT_CONNECTED])];
  if (missing.length > 0) return say(false, Reason.Pending, missing.join("; "));
  const mesh = state?.hasMesh === true ? "; mesh is deployed, and has no effect in this version" : "";
  return say(true, Reason.Programmed, `configuration is sent to data planes${mesh}`);
}

/**
 * Explains why no data plane has a listener; undefined when one has. It does not fall back when data planes go away. A
 * replica of the controller to which none is connected takes a ready pod for the acknowledgement that another one saw.
 * @param gateway "namespace/name"
 */
function missingAt(
  { key, name }: ListenerView,
  gateway: string,
  { programmed }: Pick<GatewayStatusInput, "programmed">,
  { acknowledged, hasDataPlane, deployment }: StatusContext,
): Pending | undefined {
  if (acknowledged(key) || programmed.listeners.includes(name)) return undefined;
  if (hasDataPlane(gateway)) return { pending: "no data plane has acknowledged the listener yet" };
  return deployment?.(gateway).hasReadyPods === true ? undefined : { pending: NOT_CONNECTED };
}

function isReachable({ addresses }: DeploymentState, wanted: string | undefined): boolean {
  return wanted === undefined ? addresses.length > 0 : addresses.some(({ value }) => value === wanted);
}

/** Returns the addresses to publish. While the requested address is not assigned, another one would mislead clients. */
function addressesOf({ address }: GatewayStatusInput, state: DeploymentState): DeploymentState["addresses"] {
  return isReachable(state, address) ? state.addresses : [];
}

function clientCondition(error: ConditionError | undefined, make: Make): DesiredCondition {
  if (error !== undefined) return make(Condition.ResolvedRefs, false, error.reason, error.message);
  return make(Condition.ResolvedRefs, true, Reason.ResolvedRefs, "all references are resolved");
}

function unverifiedClients(make: Make): DesiredCondition {
  const message = "AllowInsecureFallback lets clients in without a certificate that is trusted";
  return make(Condition.InsecureFrontendValidationMode, true, Reason.ConfigurationChanged, message);
}

export function computeListenerSet(input: ListenerSetStatusInput, context: StatusContext): DesiredStatus {
  const { id, generation, gateway, allowed, listeners, attached } = input;
  const make = conditionsAt(generation);
  // Unlike a Gateway, a ListenerSet is not valid when its certificates cannot be read (GEP-1713).
  const bad = listeners.flatMap((listener) => {
    const error = acceptanceError(listener) ?? listener.tlsError;
    return error === undefined ? [] : [`listener ${listener.name}: ${error.message}`];
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
      setProgrammed(input, context, make),
    ];
  };
  return {
    id,
    form: "keyed",
    conditions: conditions(),
    listeners: listeners.map((listener) => {
      const refused = context.nackReason("Listener", listener.key) ?? context.nackReason("Bind", listener.bind);
      const missing = refused ?? missingAt(listener, gateway, input, context);
      return computeListener(listener, attached.get(listener.key) ?? 0, missing, make);
    }),
  };
}

/** A ListenerSet is programmed once a data plane has one of its listeners, and stays so. */
function setProgrammed(input: ListenerSetStatusInput, context: StatusContext, make: Make): DesiredCondition {
  const valid = input.listeners.filter((listener) => acceptanceError(listener) === undefined);
  const missing = valid.map((listener) => missingAt(listener, input.gateway, input, context));
  const [first] = missing;
  if (first === undefined || input.programmed.whole || missing.includes(undefined))
    return make(Condition.Programmed, true, Reason.Programmed, "configuration is sent to data planes");
  return make(Condition.Programmed, false, Reason.Pending, first.pending);
}

/** @param missing why a data plane refused the listener, or what it waits for */
function computeListener(
  listener: ListenerView,
  attachedRoutes: number,
  missing: string | Pending | undefined,
  make: Make,
): DesiredListener {
  const { name, supportedKinds, error, tlsError, kindError } = listener;
  const refused = acceptanceError(listener);
  const refError = tlsError ?? kindError;
  const conflict = error !== undefined && CONFLICTS.has(error.reason);
  const programmed = (): DesiredCondition => {
    if (error !== undefined)
      return make(Condition.Programmed, false, conflict ? error.reason : Reason.Invalid, error.message);
    if (tlsError !== undefined) return make(Condition.Programmed, false, Reason.Invalid, tlsError.message);
    if (typeof missing === "string") return make(Condition.Programmed, false, Reason.Invalid, refusedBy(missing));
    if (missing !== undefined) return make(Condition.Programmed, false, Reason.Pending, missing.pending);
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
        ? make(Condition.Conflicted, true, error.reason, error.message)
        : make(Condition.Conflicted, false, Reason.NoConflicts, "no other listener is in the way"),
      refError === undefined
        ? make(Condition.ResolvedRefs, true, Reason.ResolvedRefs, "all references are resolved")
        : make(Condition.ResolvedRefs, false, refError.reason, refError.message),
    ],
  };
}
