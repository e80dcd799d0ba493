/**
 * Computes the status that an object should have from the status input of the translator. `src/controller` uses it. The
 * computation is pure: it has no clock, does not know entries of other controllers, and writes nothing. Conditions and
 * reasons follow the Gateway API (GEP-1364); for gwproxy's own kinds see the field `status` in
 * `docs/reference/gwpolicy.md` and `docs/reference/gwbackend.md`.
 *
 * A resource that a data plane refused is reported in a condition that its object already has:
 *
 * - GwPolicy: `Attached` False/Pending, for the Gateway concerned
 * - routes: `ResolvedRefs` False/TranslationError, for the Gateway concerned
 * - GwBackend: `Accepted` False/TranslationError
 * - BackendTLSPolicy: `Accepted` False/Invalid, for the Gateway concerned
 * - InferencePool: `ResolvedRefs` False/TranslationError, for the Gateway concerned
 * - listeners: see compute-gateway.ts
 */
import { Condition, Reason } from "../api/conditions.ts";
import { GATEWAY_GROUP, GWPROXY_GROUP } from "../api/refs.ts";
import type { StatusInput } from "../translator/shared/status-input.ts";
import type {
  BackendStatusInput,
  ClassStatusInput,
  ModelStatusInput,
  PoolStatusInput,
  TlsPolicyStatusInput,
  PolicyStatusInput,
  RouteStatusInput,
} from "../translator/shared/status-input.ts";
import { SUPPORTED_FEATURES } from "./supported-features.ts";
import { computeGateway, computeListenerSet } from "./compute-gateway.ts";
import { conditionsAt, refusedBy, type Make, type StatusContext } from "./condition.ts";
import type { DesiredCondition, DesiredEntry, DesiredStatus } from "./desired.ts";

/** Limit of `status.parents` of a GwModel, which is lower than that of a route. */
const MAX_MODEL_PARENTS = 16;

export function computeStatus(input: StatusInput, context: StatusContext): DesiredStatus {
  switch (input.kind) {
    case "GatewayClass":
      return computeClass(input);
    case "Gateway":
      return computeGateway(input, context);
    case "ListenerSet":
      return computeListenerSet(input, context);
    case "HTTPRoute":
    case "GRPCRoute":
    case "TCPRoute":
    case "TLSRoute":
      return computeRoute(input, context);
    case "GwBackend":
      return computeBackend(input, context);
    case "InferencePool":
      return computePool(input, context);
    case "GwPolicy":
      return computePolicy(input, context);
    case "BackendTLSPolicy":
      return computeTlsPolicy(input, context);
    case "GwModel":
      return computeModel(input, context);
  }
}

function computeClass({ id, generation }: ClassStatusInput): DesiredStatus {
  const make = conditionsAt(generation);
  const accepted = make(Condition.Accepted, true, Reason.Accepted, "served by this controller");
  return { id, form: "keyed", conditions: [accepted], supportedFeatures: SUPPORTED_FEATURES };
}

function computeRoute(
  { id, generation, resource, key, parents, errors }: RouteStatusInput,
  { controllerName, nackReason }: StatusContext,
): DesiredStatus {
  const make = conditionsAt(generation);
  const [first] = errors;
  const resolved = (gateways: readonly string[]): DesiredCondition => {
    if (first !== undefined) return make(Condition.ResolvedRefs, false, first.reason, joined(errors));
    const reason = gateways.map((gateway) => nackReason(resource, key, gateway)).find((each) => each !== undefined);
    if (reason !== undefined) return make(Condition.ResolvedRefs, false, Reason.TranslationError, refusedBy(reason));
    return make(Condition.ResolvedRefs, true, Reason.ResolvedRefs, "all references are resolved");
  };
  const entries = parents.map(({ gateways, ref, error }): DesiredEntry => ({
    ref: { ...ref },
    conditions: [
      error === undefined
        ? make(Condition.Accepted, true, Reason.Accepted, attachedText(ref.kind, gateways))
        : make(Condition.Accepted, false, error.reason, error.message),
      resolved(gateways),
    ],
  }));
  return { id, form: "listed", list: "parents", controllerName, entries };
}

function attachedText(parentKind: string, gateways: readonly string[]): string {
  if (parentKind !== "HTTPRoute") return "the route is attached";
  return `the parent delegates to the route${gateways.length === 0 ? ", and no Gateway serves the parent" : ""}`;
}

function computeBackend(
  { id, generation, key, accepted: translated, diagnostics }: BackendStatusInput,
  { nackReason }: StatusContext,
): DesiredStatus {
  const make = conditionsAt(generation);
  const reason = nackReason("Backend", key);
  const accepted = translated && reason === undefined;
  // A provider with a broken credential leaves the backend in use, so only the message reports it.
  const messages = [joined(diagnostics), reason === undefined ? "" : refusedBy(reason)];
  const message = messages.filter((text) => text !== "").join("; ") || "translated";
  const condition = make(Condition.Accepted, accepted, accepted ? Reason.Accepted : Reason.TranslationError, message);
  return { id, form: "keyed", conditions: [condition] };
}

/** The parents of a pool are the Gateways from which routes lead to it. */
function computePool(
  { id, generation, key, gateways, error }: PoolStatusInput,
  { controllerName, nackReason }: StatusContext,
): DesiredStatus {
  const make = conditionsAt(generation);
  const resolved = (gateway: string): DesiredCondition => {
    if (error !== undefined) return make(Condition.ResolvedRefs, false, error.reason, error.message);
    const refused = nackReason("Backend", key, gateway);
    if (refused !== undefined) return make(Condition.ResolvedRefs, false, Reason.TranslationError, refusedBy(refused));
    return make(Condition.ResolvedRefs, true, Reason.ResolvedRefs, "all references are resolved");
  };
  const entries = gateways.map((gateway): DesiredEntry => {
    const [namespace = "", name = ""] = gateway.split("/");
    const ref = { group: GATEWAY_GROUP, kind: "Gateway", namespace, name };
    const accepted = make(Condition.Accepted, true, Reason.Accepted, "a route of the Gateway leads to the pool");
    return { ref, conditions: [accepted, resolved(gateway)] };
  });
  return { id, form: "listed", list: "parents", controllerName, entries };
}

function computePolicy(input: PolicyStatusInput, context: StatusContext): DesiredStatus {
  const { id, generation, gateways, targetErrors, diagnostics, produced } = input;
  const make = conditionsAt(generation);
  const accepted = acceptance(produced, joined(diagnostics), make);
  const entries = gateways.map((gateway): DesiredEntry => {
    const [namespace = "", name = ""] = gateway.split("/");
    return {
      ref: { group: GATEWAY_GROUP, kind: "Gateway", namespace, name },
      conditions: [accepted, attachment(input, gateway, context, make), ...overridden(input, gateway, make)],
    };
  });
  const [first] = targetErrors;
  if (first !== undefined) {
    const foreign = targetErrors.every((error) => error.foreign);
    const lines = targetErrors.map(({ message }) => message).join("\n");
    entries.push({
      ref: { group: GWPROXY_GROUP, name: "StatusSummary" },
      conditions: [
        accepted,
        make(Condition.Attached, false, foreign ? Reason.TargetNotManaged : Reason.Pending, lines),
      ],
    });
  }
  const { controllerName } = context;
  return { id, form: "listed", list: "ancestors", controllerName, entries };
}

function computeTlsPolicy(input: TlsPolicyStatusInput, { controllerName, nackReason }: StatusContext): DesiredStatus {
  const { id, generation, key, gateways, conflict, error, refError } = input;
  const make = conditionsAt(generation);
  const accepted = (gateway: string): DesiredCondition => {
    if (conflict !== undefined)
      return make(Condition.Accepted, false, Reason.Conflicted, `older BackendTLSPolicy ${conflict} governs the same`);
    if (error !== undefined) return make(Condition.Accepted, false, error.reason, error.message);
    const refused = nackReason("Policy", key, gateway);
    if (refused !== undefined) return make(Condition.Accepted, false, Reason.Invalid, refusedBy(refused));
    return make(Condition.Accepted, true, Reason.Accepted, "the policy is valid");
  };
  const resolved =
    refError === undefined
      ? make(Condition.ResolvedRefs, true, Reason.ResolvedRefs, "all references are resolved")
      : make(Condition.ResolvedRefs, false, refError.reason, `${refError.path}: ${refError.message}`);
  const entries = gateways.map((gateway): DesiredEntry => {
    const [namespace = "", name = ""] = gateway.split("/");
    const ref = { group: GATEWAY_GROUP, kind: "Gateway", namespace, name };
    return { ref, conditions: [accepted(gateway), resolved] };
  });
  return { id, form: "listed", list: "ancestors", controllerName, entries };
}

function computeModel(
  { id, generation, key, parents, diagnostics }: ModelStatusInput,
  { controllerName, nackReason }: StatusContext,
): DesiredStatus {
  const make = conditionsAt(generation);
  const isInvalid = diagnostics.some(({ severity }) => severity === "error");
  const resolved = (gateways: readonly string[]): DesiredCondition => {
    if (isInvalid) return make(Condition.ResolvedRefs, false, Reason.Invalid, joined(diagnostics));
    const reason = gateways.map((gateway) => nackReason("Model", key, gateway)).find((each) => each !== undefined);
    if (reason !== undefined) return make(Condition.ResolvedRefs, false, Reason.Invalid, refusedBy(reason));
    const remarks = joined(diagnostics) || "all references are resolved";
    return make(Condition.ResolvedRefs, true, Reason.ResolvedRefs, remarks);
  };
  const entries = parents.map(({ ref, error, gateways }): DesiredEntry => ({
    ref: { ...ref },
    conditions: [
      error === undefined
        ? make(Condition.Accepted, true, Reason.Accepted, "the model is attached")
        : make(Condition.Accepted, false, error.reason, error.message),
      resolved(gateways),
    ],
  }));
  return { id, form: "listed", list: "parents", controllerName, limit: MAX_MODEL_PARENTS, entries };
}

function acceptance(produced: boolean, messages: string, make: Make): DesiredCondition {
  if (!produced) return make(Condition.Accepted, false, Reason.Invalid, messages || "the policy says nothing");
  if (messages === "") return make(Condition.Accepted, true, Reason.Valid, "the policy is valid");
  return make(Condition.Accepted, true, Reason.PartiallyValid, messages);
}

function attachment(
  { key, produced }: PolicyStatusInput,
  gateway: string,
  { acknowledged, nackReason }: StatusContext,
  make: Make,
): DesiredCondition {
  if (!produced) return make(Condition.Attached, false, Reason.Pending, "the policy is invalid");
  const reason = nackReason("Policy", key, gateway);
  if (reason !== undefined) return make(Condition.Attached, false, Reason.Pending, refusedBy(reason));
  if (acknowledged(key)) return make(Condition.Attached, true, Reason.Attached, "the policy is in force");
  return make(Condition.Attached, "Unknown", Reason.Pending, "no data plane has acknowledged the policy yet");
}

/** Says so only where it is true: a policy of which one unit is in force somewhere is not overridden. */
function overridden({ produced, overriding }: PolicyStatusInput, gateway: string, make: Make): DesiredCondition[] {
  const winners = overriding.get(gateway);
  if (!produced || winners === undefined) return [];
  const message = `everything that it sets is set by GwPolicy ${winners.join(", ")}`;
  return [make(Condition.Overridden, true, Reason.Overridden, message)];
}

function joined(messages: readonly { readonly path: string; readonly message: string }[]): string {
  return messages.map(({ path, message }) => `${path}: ${message}`).join("; ");
}
