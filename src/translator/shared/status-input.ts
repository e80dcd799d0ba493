/**
 * Defines the input from which `src/status` computes the status of each kind, and the diagnostics that `gwproxy
 * validate` and `gwproxy up` print. The input holds no resources: when it is equal, the status is equal, and nothing is
 * written.
 */
import { Reason } from "../../api/conditions.ts";
import type { ObjectId } from "../../api/object.ts";
import type {
  CatalogSourceView,
  ParentView,
  ListenerView,
  ConditionError,
  ModelParent,
  TargetError,
  RouteError,
} from "./views.ts";
import type { Resource } from "../../ir/resource.ts";
import type { Diagnostic } from "./diagnostics.ts";

interface StatusInputOf<K extends string> {
  readonly kind: K;
  readonly id: ObjectId;
  readonly generation: number;
}

export type ClassStatusInput = StatusInputOf<"GatewayClass">;

/** What a stored status says that data planes have. */
export interface ProgrammedState {
  readonly whole: boolean;
  /** Names of listeners. */
  readonly listeners: readonly string[];
}

export interface GatewayStatusInput extends StatusInputOf<"Gateway"> {
  /** Explains why the Gateway as a whole is not accepted, independent of its listeners. */
  readonly error: ConditionError | undefined;
  /** Explains why the requested address cannot be assigned. */
  readonly addressError: ConditionError | undefined;
  /** The requested address. */
  readonly address: string | undefined;
  readonly listeners: readonly ListenerView[];
  /** Number of accepted routes, by listener key. */
  readonly attached: ReadonlyMap<string, number>;
  /** Set when the Gateway names a client certificate for backends. */
  readonly client: { readonly error: ConditionError | undefined } | undefined;
  readonly admitsUnverifiedClients: boolean;
  readonly programmed: ProgrammedState;
  /** Sources of its model catalog. */
  readonly catalogSources: readonly CatalogSourceView[];
  /** Number of ListenerSets with at least one listener that can serve. */
  readonly attachedListenerSets: number;
  /** All ListenerSets that name it. */
  readonly listenerSets: readonly ObjectId[];
}

export interface ListenerSetStatusInput extends StatusInputOf<"ListenerSet"> {
  /** Key ("namespace/name") of its Gateway. */
  readonly gateway: string;
  readonly allowed: boolean;
  readonly programmed: ProgrammedState;
  readonly listeners: readonly ListenerView[];
  /** Number of accepted routes, by listener key. */
  readonly attached: ReadonlyMap<string, number>;
}

/** Route kinds for HTTP, which policies can be attached to. */
export type HttpRouteKind = "HTTPRoute" | "GRPCRoute";

export interface RouteStatusInput extends StatusInputOf<HttpRouteKind | "TCPRoute" | "TLSRoute"> {
  /** Type and key of its resource. */
  readonly resource: Resource["type"];
  readonly key: string;
  readonly parents: readonly ParentView[];
  readonly errors: readonly RouteError[];
}

export interface BackendStatusInput extends StatusInputOf<"GwBackend"> {
  /** Key of its resource. */
  readonly key: string;
  readonly accepted: boolean;
  readonly diagnostics: readonly Diagnostic[];
}

export interface PoolStatusInput extends StatusInputOf<"InferencePool"> {
  /** Key of its resource. */
  readonly key: string;
  /** Keys ("namespace/name") of the Gateways that lead to the pool. */
  readonly gateways: readonly string[];
  /** Explains why the endpoint picker cannot be called. */
  readonly error: ConditionError | undefined;
}

export interface PolicyStatusInput extends StatusInputOf<"GwPolicy"> {
  /** Key of its resource. */
  readonly key: string;
  /** Keys ("namespace/name") of the Gateways that the policy reaches. */
  readonly gateways: readonly string[];
  readonly targetErrors: readonly TargetError[];
  readonly diagnostics: readonly Diagnostic[];
  /** The policy enforces at least one setting. */
  readonly produced: boolean;
  /** "namespace/name" of the policies that it loses everything to, by the Gateway where that is so. */
  readonly overriding: ReadonlyMap<string, readonly string[]>;
}

export interface TlsPolicyStatusInput extends StatusInputOf<"BackendTLSPolicy"> {
  /** Key of its resource. */
  readonly key: string;
  /** Keys ("namespace/name") of the Gateways that reach a target of the policy. */
  readonly gateways: readonly string[];
  /** Key ("namespace/name") of an older policy that has taken every target of this one. */
  readonly conflict: string | undefined;
  readonly error: ConditionError | undefined;
  readonly refError: RouteError | undefined;
}

export interface ModelStatusInput extends StatusInputOf<"GwModel"> {
  /** Key of its resource. */
  readonly key: string;
  /** Parents that belong to this controller. */
  readonly parents: readonly ModelParent[];
  readonly diagnostics: readonly Diagnostic[];
}

/** GwParameters have no status, so their diagnostics are only printed. */
interface ParametersStatusInput extends StatusInputOf<"GwParameters"> {
  readonly diagnostics: readonly Diagnostic[];
}

export type StatusInput =
  | ClassStatusInput
  | GatewayStatusInput
  | ListenerSetStatusInput
  | RouteStatusInput
  | BackendStatusInput
  | PoolStatusInput
  | PolicyStatusInput
  | TlsPolicyStatusInput
  | ModelStatusInput;

export type ObjectStatusInput = StatusInput | ParametersStatusInput;

/** Returns the diagnostics of an object, in the form that `validate` and `up` print. */
export function diagnosticsOf(input: ObjectStatusInput): Diagnostic[] {
  const { id: object } = input;
  const makeError = (code: string, path: string, message: string): Diagnostic => ({
    code,
    severity: "error",
    object,
    path,
    message,
  });
  switch (input.kind) {
    case "GatewayClass":
      return [];
    case "ListenerSet":
      if (!input.allowed)
        return [makeError("not_allowed", "spec.parentRef", `Gateway ${input.gateway} does not take this ListenerSet`)];
      return listenerDiagnostics(input.listeners, makeError);
    case "Gateway":
      return [
        ...[input.error, input.addressError].flatMap((error) =>
          error === undefined ? [] : [placed(error, makeError)],
        ),
        ...listenerDiagnostics(input.listeners, makeError),
        ...catalogDiagnostics(input.catalogSources, makeError),
        ...(input.client?.error === undefined
          ? []
          : [
              makeError(
                codeOf(input.client.error.reason),
                "spec.tls.backend.clientCertificateRef",
                input.client.error.message,
              ),
            ]),
      ];
    case "HTTPRoute":
    case "GRPCRoute":
    case "TCPRoute":
    case "TLSRoute":
      return [
        ...input.parents.flatMap((parent) => parentDiagnostics(parent, makeError)),
        ...input.errors.map(({ reason, path, message }) => makeError(codeOf(reason), path, message)),
      ];
    case "GwModel":
      return [...input.parents.flatMap((parent) => parentDiagnostics(parent, makeError)), ...input.diagnostics];
    case "InferencePool":
      return input.error === undefined
        ? []
        : [makeError(codeOf(input.error.reason), "spec.endpointPickerRef", input.error.message)];
    case "GwBackend":
    case "GwParameters":
      return [...input.diagnostics];
    case "BackendTLSPolicy":
      return [
        ...(input.conflict === undefined
          ? []
          : [makeError("conflicted", "spec.targetRefs", `older BackendTLSPolicy ${input.conflict} governs the same`)]),
        ...(input.error === undefined
          ? []
          : [makeError(codeOf(input.error.reason), "spec.validation", input.error.message)]),
        ...(input.refError === undefined
          ? []
          : [makeError(codeOf(input.refError.reason), input.refError.path, input.refError.message)]),
      ];
    case "GwPolicy":
      return [
        ...input.targetErrors.map(({ path, message, isUnattached }) =>
          makeError(isUnattached ? "target_unattached" : "target_unresolved", path, message),
        ),
        ...input.diagnostics,
      ];
  }
}

function parentDiagnostics(
  { error, at }: Pick<ParentView, "error" | "at">,
  makeError: (code: string, path: string, message: string) => Diagnostic,
): Diagnostic[] {
  return error === undefined ? [] : [makeError(codeOf(error.reason), `spec.parentRefs[${at}]`, error.message)];
}

/** A catalog that cannot be read closes nothing, so that it is a warning. */
function catalogDiagnostics(
  sources: readonly CatalogSourceView[],
  makeError: (code: string, path: string, message: string) => Diagnostic,
): Diagnostic[] {
  return sources.flatMap(({ name, error }): Diagnostic[] => {
    if (error === undefined) return [];
    const path = "spec.infrastructure.parametersRef";
    return [{ ...makeError("catalog_unreadable", path, `model catalog ${name}: ${error}`), severity: "warning" }];
  });
}

function listenerDiagnostics(
  listeners: readonly ListenerView[],
  makeError: (code: string, path: string, message: string) => Diagnostic,
): Diagnostic[] {
  return listeners.flatMap(({ error, tlsError, kindError }, at) =>
    [error, tlsError, kindError].flatMap((found) => {
      const member = LISTENER_MEMBERS[found?.reason ?? ""];
      const path = `spec.listeners[${at}]${member === undefined ? "" : `.${member}`}`;
      return found === undefined ? [] : [makeError(codeOf(found.reason), path, found.message)];
    }),
  );
}

/** The field of a listener that each reason is about. */
const LISTENER_MEMBERS: Readonly<Record<string, string>> = {
  [Reason.UnsupportedProtocol]: "protocol",
  [Reason.ProtocolConflict]: "protocol",
  [Reason.HostnameConflict]: "hostname",
  [Reason.BindModeConflict]: "port",
  [Reason.InvalidRouteKinds]: "allowedRoutes.kinds",
  [Reason.InvalidCertificateRef]: "tls.certificateRefs",
};

/** Splits the message of an error that begins with a field path into path and text. */
function placed(
  { reason, message }: ConditionError,
  makeError: (code: string, path: string, message: string) => Diagnostic,
): Diagnostic {
  const [, path = "spec", text = message] = /^(spec[\w.[\]]*): (.*)$/su.exec(message) ?? [];
  return makeError(codeOf(reason), path, text);
}

/** Converts a reason into a diagnostic code: "BackendNotFound" → "backend_not_found". */
function codeOf(reason: string): string {
  return reason.replace(/(?<=[a-z])(?=[A-Z])/g, "_").toLowerCase();
}
