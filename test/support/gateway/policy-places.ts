/** Manifests for tests of where policies hold: two listeners, two routes of two rules each, policies that leave a mark. */
import { echoed, startEcho } from "../servers/echo.ts";
import { documents, GATEWAY, startGateway, staticBackend, type TestGateway } from "./gateway.ts";
import { call } from "../clients/http.ts";
import type { ProofContext } from "./prove.ts";

/** Two listeners: `http` on 8080 and `second` on 8081. */
export const TWO_LISTENERS: string = `${GATEWAY.trimEnd().replace("{name: gw}", "{name: gw, labels: {tier: edge}}")}
    - {name: second, port: 8081, protocol: HTTP}
`;

/** A route on every listener with the rules `one` at /prefix/one and `two` at /prefix/two. */
export function twoRules(name: string, prefix: string, backend: string, labels = "{}"): string {
  const rule = (section: string) => `
    - name: ${section}
      matches: [{path: {type: PathPrefix, value: ${prefix}/${section}}}]
      backendRefs: [{group: gwproxy.dev, kind: GwBackend, name: ${backend}}]`;
  return `
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: ${name}, labels: ${labels}}
spec:
  parentRefs: [{name: gw}]
  rules:${rule("one")}${rule("two")}
`;
}

export interface PolicyParts {
  /** YAML flow of the items of spec.targetRefs; without it there are `selectors`. */
  readonly refs?: string;
  readonly selectors?: string;
  /** The rest of spec as YAML flow members. */
  readonly says: string;
  readonly created?: string;
}

export function policy(name: string, { refs, selectors, says, created }: PolicyParts): string {
  const targets = refs === undefined ? `targetSelectors: [${selectors}]` : `targetRefs: [${refs}]`;
  const date = created === undefined ? "" : `, creationTimestamp: "${created}"`;
  return `
apiVersion: gwproxy.dev/v1alpha1
kind: GwPolicy
metadata: {name: ${name}${date}}
spec: {${targets}, ${says}}
`;
}

export const GROUP = "group: gateway.networking.k8s.io";
export const gatewayRef = (section?: string): string =>
  `{${GROUP}, kind: Gateway, name: gw${section === undefined ? "" : `, sectionName: ${section}`}}`;
export const routeRef = (name: string, section?: string): string =>
  `{${GROUP}, kind: HTTPRoute, name: ${name}${section === undefined ? "" : `, sectionName: ${section}`}}`;
/** Says its own name in a response header. */
export const marks = (value: string): string =>
  `traffic: {headerModifiers: {response: {set: [{name: x-mark, value: ${value}}]}}}`;
/** Says its own name in the credential that the upstream sees. */
export const presents = (key: string): string => `backend: {auth: {key: ${key}}}`;

/** Routes a (label app: a) and b to backends of the same names, and the policies. */
export async function serve(context: ProofContext, ...policies: readonly string[]): Promise<TestGateway> {
  const { port } = await startEcho(context);
  const backends = [
    staticBackend("a", port).replace("{name: a}", "{name: a, labels: {app: a}}"),
    staticBackend("b", port).replace("{name: b}", "{name: b, labels: {app: b}}"),
  ];
  const routes = [twoRules("a", "/a", "a", "{app: a}"), twoRules("b", "/b", "b", "{app: b}")];
  return startGateway(context, documents(TWO_LISTENERS, ...backends, ...routes, ...policies));
}

/** The mark of each path; "" for none. */
export function marksAt(gateway: TestGateway, paths: readonly string[], port = 8080): Promise<string[]> {
  return Promise.all(paths.map(async (path) => String((await call(gateway.url(port) + path)).headers["x-mark"] ?? "")));
}

/** The credential that the upstream saw for each path; "" for none. */
export function credentialsAt(gateway: TestGateway, paths: readonly string[]): Promise<string[]> {
  return Promise.all(
    paths.map(async (path) => echoed((await call(gateway.url() + path)).body).headers["authorization"] ?? ""),
  );
}

/** Every path of the routes a and b. */
export const ALL: readonly string[] = ["/a/one", "/a/two", "/b/one", "/b/two"];
