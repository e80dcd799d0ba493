/**
 * Manifests for tests of policy attachment: two listeners, two routes of two rules each, and policies that leave a
 * visible mark.
 */
import { echoed, startEcho } from "../servers/echo.ts";
import { documents, GATEWAY, startGateway, staticBackend, type TestGateway } from "../gateway/gateway.ts";
import { call } from "../clients/http.ts";
import type { ProofContext } from "./prove.ts";

/** A Gateway with two listeners: `http` on 8080 and `second` on 8081. */
export const TWO_LISTENERS: string = `${GATEWAY.trimEnd().replace("{name: gw}", "{name: gw, labels: {tier: edge}}")}
    - {name: second, port: 8081, protocol: HTTP}
`;

/** Returns a route on every listener with the rules `one` at /prefix/one and `two` at /prefix/two. */
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
  /** Flow YAML of the items of spec.targetRefs; without it, `selectors` is used. */
  readonly refs?: string;
  readonly selectors?: string;
  /** Rest of spec as members in flow YAML. */
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
/** Returns a policy that sets a response header to its own name. */
export const marks = (value: string): string =>
  `traffic: {headerModifiers: {response: {set: [{name: x-mark, value: ${value}}]}}}`;
/** Returns a policy that sends its own name as the credential to the upstream. */
export const presents = (key: string): string => `backend: {auth: {key: ${key}}}`;

/** Starts a gateway with the routes a (label app: a) and b, backends of the same names, and the policies. */
export async function serve(context: ProofContext, ...policies: readonly string[]): Promise<TestGateway> {
  const { port } = await startEcho(context);
  const backends = [
    staticBackend("a", port).replace("{name: a}", "{name: a, labels: {app: a}}"),
    staticBackend("b", port).replace("{name: b}", "{name: b, labels: {app: b}}"),
  ];
  const routes = [twoRules("a", "/a", "a", "{app: a}"), twoRules("b", "/b", "b", "{app: b}")];
  return startGateway(context, documents(TWO_LISTENERS, ...backends, ...routes, ...policies));
}

/** Returns the mark of each path; "" for none. */
export function marksAt(gateway: TestGateway, paths: readonly string[], port = 8080): Promise<string[]> {
  return Promise.all(paths.map(async (path) => String((await call(gateway.url(port) + path)).headers["x-mark"] ?? "")));
}

/** Returns the credential that the upstream received for each path; "" for none. */
export function credentialsAt(gateway: TestGateway, paths: readonly string[]): Promise<string[]> {
  return Promise.all(
    paths.map(async (path) => echoed((await call(gateway.url() + path)).body).headers["authorization"] ?? ""),
  );
}

/** Every path of the routes a and b. */
export const ALL: readonly string[] = ["/a/one", "/a/two", "/b/one", "/b/two"];
