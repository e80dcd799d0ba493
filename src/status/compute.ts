/**
 * Facts of the translator → what the status of an object should say. Pure: no clock, no foreign entries, no writing.
 * Conditions and reasons follow the Gateway API, and for our own kinds the specification of GwPolicy and GwBackend.
 */
import { Condition, Reason } from "../api/conditions.ts";
import { GATEWAY_GROUP, GWPROXY_GROUP } from "../api/refs.ts";
import type { StatusFacts } from "../translator/facts.ts";
import type { BackendFacts, ClassFacts, GatewayFacts, PolicyFacts, RouteFacts } from "../translator/facts.ts";
import type { DesiredCondition, DesiredEntry, DesiredListener, DesiredStatus } from "./desired.ts";

export interface StatusContext {
  readonly controllerName: string;
  /** Whether at least one data plane has acknowledged the resource of this key. */
  readonly acknowledged: (resourceKey: string) => boolean;
}

/** `status.ancestors` holds 16 entries at most. */
const MAX_ANCESTORS = 16;

export function computeStatus(facts: StatusFacts, context: StatusContext): DesiredStatus {
  switch (facts.kind) {
    case "GatewayClass":
      return computeClass(facts);
    case "Gateway":
      return computeGateway(facts);
    case "HTTPRoute":
      return computeRoute(facts, context);
    case "GwBackend":
      return computeBackend(facts);
    case "GwPolicy":
      return computePolicy(facts, context);
  }
}

type Make = (
  type: string,
  status: boolean | DesiredCondition["status"],
  reason: string,
  message: string,
) => DesiredCondition;

function conditionsAt(observedGeneration: number): Make {
  return (type, status, reason, message) => ({
    type,
    status: typeof status === "string" ? status : status ? "True" : "False",
    reason,
    message,
    observedGeneration,
  });
}

function computeClass({ id, generation }: ClassFacts): DesiredStatus {
  const make = conditionsAt(generation);
  const accepted = make(Condition.Accepted, true, Reason.Accepted, "served by this controller");
  return { id, form: "keyed", conditions: [accepted] };
}

function computeGateway({ id, generation, listeners, attached }: GatewayFacts): DesiredStatus {
  const make = conditionsAt(generation);
  const bad = listeners.filter(({ fault }) => fault !== undefined);
  const none = bad.length > 0 && bad.length === listeners.length;
  const message = bad.map(({ name, fault }) => `listener ${name}: ${fault?.message}`).join("; ");
  return {
    id,
    form: "keyed",
    conditions: [
      bad.length === 0
        ? make(Condition.Accepted, true, Reason.Accepted, "all listeners are valid")
        : make(Condition.Accepted, !none, Reason.ListenersNotValid, message),
      none
        ? make(Condition.Programmed, false, Reason.Invalid, "no listener can serve")
        : make(Condition.Programmed, true, Reason.Programmed, "configuration is sent to data planes"),
    ],
    listeners: listeners.map((listener) => computeListener(listener, attached.get(listener.name) ?? 0, make)),
  };
}

function computeListener(
  { name, supportedKinds, fault, kindFault }: GatewayFacts["listeners"][number],
  attachedRoutes: number,
  make: Make,
): DesiredListener {
  const conflict = fault?.reason === Reason.HostnameConflict || fault?.reason === Reason.ProtocolConflict;
  const unserved = conflict ? fault.reason : Reason.Invalid;
  return {
    name,
    attachedRoutes,
    supportedKinds,
    conditions: [
      fault === undefined
        ? make(Condition.Accepted, true, Reason.Accepted, "the listener is valid")
        : make(Condition.Accepted, false, fault.reason, fault.message),
      fault === undefined
        ? make(Condition.Programmed, true, Reason.Programmed, "the listener is sent to data planes")
        : make(Condition.Programmed, false, unserved, fault.message),
      conflict
        ? make(Condition.Conflicted, true, fault.reason, fault.message)
        : make(Condition.Conflicted, false, Reason.NoConflicts, "no other listener is in the way"),
      kindFault === undefined
        ? make(Condition.ResolvedRefs, true, Reason.ResolvedRefs, "all references are resolved")
        : make(Condition.ResolvedRefs, false, kindFault.reason, kindFault.message),
    ],
  };
}

function computeRoute(
  { id, generation, parents, faults }: RouteFacts,
  { controllerName }: StatusContext,
): DesiredStatus {
  const make = conditionsAt(generation);
  const [first] = faults;
  const resolved =
    first === undefined
      ? make(Condition.ResolvedRefs, true, Reason.ResolvedRefs, "all references are resolved")
      : make(Condition.ResolvedRefs, false, first.reason, joined(faults));
  const entries = parents.map(({ ref, fault }): DesiredEntry => ({
    ref: { ...ref },
    conditions: [
      fault === undefined
        ? make(Condition.Accepted, true, Reason.Accepted, "the route is attached")
        : make(Condition.Accepted, false, fault.reason, fault.message),
      resolved,
    ],
  }));
  return { id, form: "listed", list: "parents", controllerName, entries };
}

function computeBackend({ id, generation, accepted, diagnostics }: BackendFacts): DesiredStatus {
  const make = conditionsAt(generation);
  // A provider that carries a broken credential leaves the backend in use, so it is named in the message alone.
  const message = joined(diagnostics) || "translated";
  const condition = make(Condition.Accepted, accepted, accepted ? Reason.Accepted : Reason.TranslationError, message);
  return { id, form: "keyed", conditions: [condition] };
}

function computePolicy(facts: PolicyFacts, context: StatusContext): DesiredStatus {
  const { id, generation, gateways, problems, diagnostics, produced } = facts;
  const make = conditionsAt(generation);
  const accepted = acceptance(produced, joined(diagnostics), make);
  const entries = gateways.map((gateway): DesiredEntry => {
    const [namespace = "", name = ""] = gateway.split("/");
    return {
      ref: { group: GATEWAY_GROUP, kind: "Gateway", namespace, name },
      conditions: [accepted, attachment(facts, context, make)],
    };
  });
  const [first] = problems;
  if (first !== undefined) {
    const foreign = problems.every((problem) => problem.foreign);
    const lines = problems.map(({ message }) => message).join("\n");
    entries.push({
      ref: { group: GWPROXY_GROUP, name: "StatusSummary" },
      conditions: [
        accepted,
        make(Condition.Attached, false, foreign ? Reason.TargetNotManaged : Reason.Pending, lines),
      ],
    });
  }
  const { controllerName } = context;
  return { id, form: "listed", list: "ancestors", controllerName, entries: atMost(entries, make) };
}

function acceptance(produced: boolean, problems: string, make: Make): DesiredCondition {
  if (!produced) return make(Condition.Accepted, false, Reason.Invalid, problems || "the policy says nothing");
  if (problems === "") return make(Condition.Accepted, true, Reason.Valid, "the policy is valid");
  return make(Condition.Accepted, true, Reason.PartiallyValid, problems);
}

function attachment({ key, produced }: PolicyFacts, { acknowledged }: StatusContext, make: Make): DesiredCondition {
  if (!produced) return make(Condition.Attached, false, Reason.Pending, "the policy is invalid");
  if (acknowledged(key)) return make(Condition.Attached, true, Reason.Attached, "the policy is in force");
  return make(Condition.Attached, "Unknown", Reason.Pending, "no data plane has acknowledged the policy yet");
}

function atMost(entries: readonly DesiredEntry[], make: Make): DesiredEntry[] {
  if (entries.length <= MAX_ANCESTORS) return [...entries];
  const left = entries.length - (MAX_ANCESTORS - 1);
  const summary: DesiredEntry = {
    ref: { group: GWPROXY_GROUP, name: "StatusSummary" },
    conditions: [make(Condition.StatusSummarized, true, Reason.StatusSummary, `${left} more entries are left out`)],
  };
  return [...entries.slice(0, MAX_ANCESTORS - 1), summary];
}

function joined(problems: readonly { readonly path: string; readonly message: string }[]): string {
  return problems.map(({ path, message }) => `${path}: ${message}`).join("; ");
}
