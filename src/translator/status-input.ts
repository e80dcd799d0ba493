/** What status needs to know of an object, free of resources: when facts are equal, so is the status. */
import { Reason } from "../api/conditions.ts";
import type { ObjectId } from "../api/object.ts";
import type { ParentView } from "./routes/attach.ts";
import type { Resource } from "../ir/resource.ts";
import type { Diagnostic } from "./diagnostics.ts";
import type { Fault, ListenerView } from "./gateways/gateway.ts";
import type { ParentRefView } from "./model.ts";
import type { TargetProblem } from "./policies/target.ts";
import type { RouteFault } from "./routes/route.ts";

interface StatusInputOf<K extends string> {
  readonly kind: K;
  readonly id: ObjectId;
  readonly generation: number;
}

export type ClassStatusInput = StatusInputOf<"GatewayClass">;

export interface GatewayStatusInput extends StatusInputOf<"Gateway"> {
  /** Why it is not accepted as a whole, whatever its listeners say. */
  readonly fault: Fault | undefined;
  /** Why it cannot have the address that it asks for. */
  readonly addressFault: Fault | undefined;
  /** The address that it asks for. */
  readonly address: string | undefined;
  readonly listeners: readonly ListenerView[];
  /** Listener key → accepted routes. */
  readonly attached: ReadonlyMap<string, number>;
  /** Set where it names a certificate for backends. */
  readonly client: { readonly fault: Fault | undefined } | undefined;
  readonly admitsUnverifiedClients: boolean;
  /** ListenerSets of which at least one listener can serve. */
  readonly attachedListenerSets: number;
}

export interface ListenerSetStatusInput extends StatusInputOf<"ListenerSet"> {
  /** "namespace/name" */
  readonly gateway: string;
  readonly allowed: boolean;
  readonly listeners: readonly ListenerView[];
  /** Listener key → accepted routes. */
  readonly attached: ReadonlyMap<string, number>;
}

/** The kinds of routes for HTTP: those that policies may be attached to. */
export type HttpRouteKind = "HTTPRoute" | "GRPCRoute";

export interface RouteStatusInput extends StatusInputOf<HttpRouteKind | "TCPRoute" | "TLSRoute"> {
  /** Type and key of its resource. */
  readonly resource: Resource["type"];
  readonly key: string;
  readonly parents: readonly ParentView[];
  readonly faults: readonly RouteFault[];
}

export interface BackendStatusInput extends StatusInputOf<"GwBackend"> {
  /** Key of its resource. */
  readonly key: string;
  readonly accepted: boolean;
  readonly diagnostics: readonly Diagnostic[];
}

export interface PolicyStatusInput extends StatusInputOf<"GwPolicy"> {
  /** Key of its resource. */
  readonly key: string;
  /** "namespace/name" of each Gateway that it reaches. */
  readonly gateways: readonly string[];
  readonly problems: readonly TargetProblem[];
  readonly diagnostics: readonly Diagnostic[];
  /** Something of it can be put in force. */
  readonly produced: boolean;
}

export interface TlsPolicyStatusInput extends StatusInputOf<"BackendTLSPolicy"> {
  /** Key of its resource. */
  readonly key: string;
  /** "namespace/name" of each Gateway that reaches what it names. */
  readonly gateways: readonly string[];
  /** "namespace/name" of an older policy that took everything it names. */
  readonly conflict: string | undefined;
  readonly fault: Fault | undefined;
  readonly refFault: RouteFault | undefined;
}

export interface ModelStatusInput extends StatusInputOf<"GwModel"> {
  /** Parents of ours, as they are written into the status. */
  readonly parents: readonly ParentRefView[];
  readonly diagnostics: readonly Diagnostic[];
}

/** Their status is empty: what is found is only printed. */
interface ParametersStatusInput extends StatusInputOf<"GwParameters"> {
  readonly diagnostics: readonly Diagnostic[];
}

export type StatusInput =
  | ClassStatusInput
  | GatewayStatusInput
  | ListenerSetStatusInput
  | RouteStatusInput
  | BackendStatusInput
  | PolicyStatusInput
  | TlsPolicyStatusInput
  | ModelStatusInput;

export type ObjectStatusInput = StatusInput | ParametersStatusInput;

/** Findings as `validate` and `up` print them. */
export function diagnosticsOf(facts: ObjectStatusInput): Diagnostic[] {
  const { id: object } = facts;
  const error = (code: string, path: string, message: string): Diagnostic => ({
    code,
    severity: "error",
    object,
    path,
    message,
  });
  switch (facts.kind) {
    case "GatewayClass":
      return [];
    case "ListenerSet":
      if (!facts.allowed)
        return [error("not_allowed", "spec.parentRef", `Gateway ${facts.gateway} does not take this ListenerSet`)];
      return listenerDiagnostics(facts.listeners, error);
    case "Gateway":
      return [
        ...[facts.fault, facts.addressFault].flatMap((fault) => (fault === undefined ? [] : [placed(fault, error)])),
        ...listenerDiagnostics(facts.listeners, error),
        ...(facts.client?.fault === undefined
          ? []
          : [
              error(
                codeOf(facts.client.fault.reason),
                "spec.tls.backend.clientCertificateRef",
                facts.client.fault.message,
              ),
            ]),
      ];
    case "HTTPRoute":
    case "GRPCRoute":
    case "TCPRoute":
    case "TLSRoute":
      return [
        ...facts.parents.flatMap(({ fault, at }) =>
          fault === undefined ? [] : [error(codeOf(fault.reason), `spec.parentRefs[${at}]`, fault.message)],
        ),
        ...facts.faults.map(({ reason, path, message }) => error(codeOf(reason), path, message)),
      ];
    case "GwBackend":
    case "GwModel":
    case "GwParameters":
      return [...facts.diagnostics];
    case "BackendTLSPolicy":
      return [
        ...(facts.conflict === undefined
          ? []
          : [error("conflicted", "spec.targetRefs", `older BackendTLSPolicy ${facts.conflict} governs the same`)]),
        ...(facts.fault === undefined
          ? []
          : [error(codeOf(facts.fault.reason), "spec.validation", facts.fault.message)]),
        ...(facts.refFault === undefined
          ? []
          : [error(codeOf(facts.refFault.reason), facts.refFault.path, facts.refFault.message)]),
      ];
    case "GwPolicy":
      return [
        ...facts.problems.map(({ path, message, isUnattached }) =>
          error(isUnattached ? "target_unattached" : "target_unresolved", path, message),
        ),
        ...facts.diagnostics,
      ];
  }
}

function listenerDiagnostics(
  listeners: readonly ListenerView[],
  error: (code: string, path: string, message: string) => Diagnostic,
): Diagnostic[] {
  return listeners.flatMap(({ fault, tlsFault, kindFault }, at) =>
    [fault, tlsFault, kindFault].flatMap((found) => {
      const member = LISTENER_MEMBERS[found?.reason ?? ""];
      const path = `spec.listeners[${at}]${member === undefined ? "" : `.${member}`}`;
      return found === undefined ? [] : [error(codeOf(found.reason), path, found.message)];
    }),
  );
}

/** The member of a listener that each reason is about. */
const LISTENER_MEMBERS: Readonly<Record<string, string>> = {
  [Reason.UnsupportedProtocol]: "protocol",
  [Reason.ProtocolConflict]: "protocol",
  [Reason.HostnameConflict]: "hostname",
  [Reason.BindModeConflict]: "port",
  [Reason.InvalidRouteKinds]: "allowedRoutes.kinds",
  [Reason.InvalidCertificateRef]: "tls.certificateRefs",
};

/** A fault of the whole object whose message begins with the field that it is about. */
function placed(
  { reason, message }: Fault,
  error: (code: string, path: string, message: string) => Diagnostic,
): Diagnostic {
  const [, path = "spec", text = message] = /^(spec[\w.[\]]*): (.*)$/su.exec(message) ?? [];
  return error(codeOf(reason), path, text);
}

/** "BackendNotFound" → "backend_not_found" */
function codeOf(reason: string): string {
  return reason.replace(/(?<=[a-z])(?=[A-Z])/g, "_").toLowerCase();
}
