/** A gateway whose one backend has an `auth` block, for tests of the kinds of authentication. */
import assert from "node:assert/strict";
import { call, type Call } from "../clients/http.ts";
import { keySet, type Issuer } from "../fixtures/tokens.ts";
import type { ProofContext } from "../proofs/prove.ts";
import { echoed, startEcho, type Echo, type Echoed } from "../servers/echo.ts";
import { documents, GATEWAY, route, routePolicy, startGateway, staticBackend, type TestGateway } from "./gateway.ts";

/** A place where the block can stand. */
export interface AuthPlace {
  /** Name for titles of tests. */
  readonly kind: string;
  /** Path of the block in the ledger. */
  readonly prefix: string;
  /** A backend `web` with the block, and a policy if that is where the block stands. @param auth YAML flow */
  objects(port: number, auth: string): string;
}

export const INLINE_AUTH: AuthPlace = {
  kind: "GwBackend",
  prefix: "GwBackend spec.policies.auth",
  objects: (port, auth) => `${staticBackend("web", port).trimEnd()}\n  policies: {auth: ${auth}}\n`,
};

export const ATTACHED_AUTH: AuthPlace = {
  kind: "GwPolicy",
  prefix: "GwPolicy spec.backend.auth",
  objects: (port, auth) =>
    documents(staticBackend("web", port), routePolicy("auth", "web", `  backend: {auth: ${auth}}`)),
};

/** A provider that passes requests through as they are. */
const PROVIDER_AUTH: AuthPlace = {
  kind: "provider",
  prefix: "GwBackend spec.ai.groups[].providers[].policies.auth",
  objects: (port, auth) => `
apiVersion: gwproxy.dev/v1alpha1
kind: GwBackend
metadata: {name: web}
spec:
  policies: {ai: {routes: {"*": Passthrough}}}
  ai: {groups: [{providers: [{name: one, llma: {}, host: 127.0.0.1, port: ${port}, policies: {auth: ${auth}}}]}]}
`,
};

export const AUTH_PLACES: readonly AuthPlace[] = [INLINE_AUTH, ATTACHED_AUTH, PROVIDER_AUTH];

interface AuthGateway {
  readonly gateway: TestGateway;
  readonly manifests: string;
  /** The upstream, which receives the requests that leave the gateway. */
  readonly echo: Echo;
}

/** @param auth YAML flow @param more further manifests */
export async function serveAuth(
  context: ProofContext,
  place: AuthPlace,
  auth: string,
  ...more: readonly string[]
): Promise<AuthGateway> {
  const echo = await startEcho(context);
  const manifests = documents(GATEWAY, place.objects(echo.port, auth), route("web", "web"), ...more);
  return { gateway: await startGateway(context, manifests), manifests, echo };
}

/** Returns what the upstream saw of a request. */
export async function seen({ gateway }: AuthGateway, path = "/", options: Call = {}): Promise<Echoed> {
  const answer = await call(gateway.url() + path, options);
  assert.equal(answer.status, 200, answer.body);
  return echoed(answer.body);
}

/** Returns a policy on the route that verifies tokens. @param more further members of the block, as YAML flow */
export function verifyTokens({ name, jwk }: Issuer, more = ""): string {
  const providers = `[{issuer: "${name}", jwks: {inline: '${keySet(jwk)}'}}]`;
  return routePolicy("tokens", "web", `  traffic: {jwtAuthentication: {providers: ${providers}, ${more}}}`);
}

/** Returns a Secret. */
export function secret(name: string, entries: Readonly<Record<string, string>>): string {
  const data = Object.fromEntries(
    Object.entries(entries).map(([entry, text]) => [entry, Buffer.from(text).toString("base64")]),
  );
  return JSON.stringify({ apiVersion: "v1", kind: "Secret", metadata: { name }, data });
}
