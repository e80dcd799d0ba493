/**
 * Lists every field that references another object, by kind: those of gwproxy's kinds come from the schemas, those of
 * the Gateway API are listed by hand. `find.ts` uses it.
 */
import { REFS } from "../../../generated/refs.ts";
import { GATEWAY_GROUP, GWPROXY_GROUP, INFERENCE_GROUP } from "../../api/refs.ts";

export interface ReferencePlace {
  /** Field names; "*" stands for each list item or map value. */
  readonly path: readonly string[];
  /** Allowed kinds as "group/Kind"; a reference without group and kind means the first. */
  readonly kinds: readonly string[];
}

const SERVICE = "/Service";
const BACKEND = `${GWPROXY_GROUP}/GwBackend`;
const POOL = `${INFERENCE_GROUP}/InferencePool`;
const GATEWAY = `${GATEWAY_GROUP}/Gateway`;

function place(path: string, ...kinds: readonly string[]): ReferencePlace {
  return { path: path.split("."), kinds };
}

const PARENTS = place("spec.parentRefs.*", GATEWAY, `${GATEWAY_GROUP}/ListenerSet`);
const BACKENDS = place("spec.rules.*.backendRefs.*", SERVICE, BACKEND);
const BACKENDS_AND_POOLS = place("spec.rules.*.backendRefs.*", SERVICE, BACKEND, POOL);
const ROUTE = `${GATEWAY_GROUP}/HTTPRoute`;
const PARENTS_AND_ROUTES = place("spec.parentRefs.*", GATEWAY, `${GATEWAY_GROUP}/ListenerSet`, ROUTE);
const DESTINATIONS = place("spec.rules.*.backendRefs.*", SERVICE, BACKEND, POOL, ROUTE, `${GWPROXY_GROUP}/GwModel`);
const PICKER = place("spec.endpointPickerRef", SERVICE);
const LISTENER_CERTIFICATES = place("spec.listeners.*.tls.certificateRefs.*", "/Secret");
const MIRRORS = [
  place("spec.rules.*.filters.*.requestMirror.backendRef", SERVICE, BACKEND, POOL),
  place("spec.rules.*.backendRefs.*.filters.*.requestMirror.backendRef", SERVICE, BACKEND, POOL),
];

const GATEWAY_API: Readonly<Record<string, readonly ReferencePlace[]>> = {
  Gateway: [
    LISTENER_CERTIFICATES,
    place("spec.tls.backend.clientCertificateRef", "/Secret"),
    place("spec.tls.frontend.default.validation.caCertificateRefs.*", "/ConfigMap", "/Secret"),
    place("spec.tls.frontend.perPort.*.tls.validation.caCertificateRefs.*", "/ConfigMap", "/Secret"),
    place("spec.infrastructure.parametersRef", `${GWPROXY_GROUP}/GwParameters`),
  ],
  ListenerSet: [place("spec.parentRef", GATEWAY), LISTENER_CERTIFICATES],
  HTTPRoute: [PARENTS_AND_ROUTES, DESTINATIONS, ...MIRRORS],
  GRPCRoute: [PARENTS, BACKENDS_AND_POOLS, ...MIRRORS],
  TCPRoute: [PARENTS, BACKENDS],
  TLSRoute: [PARENTS, BACKENDS],
  BackendTLSPolicy: [
    place("spec.targetRefs.*", SERVICE, BACKEND, POOL),
    place("spec.validation.caCertificateRefs.*", "/ConfigMap"),
  ],
};

/** References without selectors, because a selector finds objects by labels and not by name. */
const NAMED_REFS = new Map(
  Object.entries(REFS).map(([groupKind, refs]) => [groupKind, refs.filter(({ selector }) => !selector)]),
);

export function referencePlaces(group: string, kind: string): readonly ReferencePlace[] {
  if (group === GATEWAY_GROUP) return GATEWAY_API[kind] ?? [];
  if (group === INFERENCE_GROUP) return kind === "InferencePool" ? [PICKER] : [];
  return NAMED_REFS.get(`${group}/${kind}`) ?? [];
}

export interface PlacedValue {
  readonly path: string;
  readonly value: Readonly<Record<string, unknown>>;
}

/** Returns the objects at the paths that a pattern matches. */
export function valuesAt(value: unknown, [step, ...rest]: readonly string[], path = ""): PlacedValue[] {
  if (typeof value !== "object" || value === null) return [];
  // Objects and lists can both be read by their own keys.
  const members = value as Readonly<Record<string, unknown>>;
  if (step === undefined) return Array.isArray(value) ? [] : [{ path, value: members }];
  if (step !== "*")
    return Object.hasOwn(members, step) ? valuesAt(members[step], rest, path === "" ? step : `${path}.${step}`) : [];
  return Object.entries(members).flatMap(([name, child]) =>
    valuesAt(child, rest, Array.isArray(value) ? `${path}[${name}]` : `${path}.${name}`),
  );
}
