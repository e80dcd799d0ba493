/**
 * The places of an `auth` block that stand for an upstream, with a request that reaches each. A row is one kind of
 * authentication in one form; what the upstream receives tells whether every field of it took effect.
 */
import assert from "node:assert/strict";
import { call } from "../clients/http.ts";
import type { ProofContext } from "../proofs/prove.ts";
import { startEcho, type Echoed } from "../servers/echo.ts";
import { AUTH_PLACES } from "./backend-auth.ts";
import { documents, route, startGateway, type TestGateway } from "./gateway.ts";
import { gwModel, MODEL_GATEWAY, service } from "./models.ts";

interface Place {
  readonly kind: string;
  readonly prefix: string;
  objects(port: number, auth: string): string;
  readonly path: string;
  readonly body: object;
}

/** Places whose requests the gateway writes itself. */
const WRITTEN_PLACES: readonly Place[] = [
  {
    kind: "MCP target",
    prefix: "GwBackend spec.mcp.targets[].static.policies.auth",
    objects: (port, auth) =>
      documents(
        `
apiVersion: gwproxy.dev/v1alpha1
kind: GwBackend
metadata: {name: web}
spec: {mcp: {targets: [{name: one, static: {host: 127.0.0.1, port: ${port}, policies: {auth: ${auth}}}}]}}
`,
        route("web", "web"),
      ),
    path: "/mcp",
    body: {
      jsonrpc: "2.0",
      id: 1,
      method: "initialize",
      params: { protocolVersion: "2025-06-18", capabilities: {}, clientInfo: { name: "test", version: "1" } },
    },
  },
  {
    kind: "GwModel",
    prefix: "GwModel spec.policies.auth",
    objects: (port, auth) => {
      const custom = "provider: custom, custom: {formats: [{type: Completions}], backendRef: {name: one, port: 80}}";
      return documents(
        service("one", port),
        gwModel("m", `parentRefs: [{name: gw}], ${custom}, policies: {auth: ${auth}}`),
      );
    },
    path: "/v1/chat/completions",
    body: { model: "m", messages: [{ role: "user", content: "hi" }] },
  },
];

export const ALL_PLACES: readonly Place[] = [
  ...AUTH_PLACES.map(({ kind, prefix, objects }) => ({
    kind,
    prefix,
    objects: (port: number, auth: string) => documents(objects(port, auth), route("web", "web")),
    path: "/v1/chat/completions",
    body: { model: "m", messages: [{ role: "user", content: "hi" }] },
  })),
  ...WRITTEN_PLACES,
];

/** Requests through a gateway, and what has to be true of them then. */
export interface AuthScene {
  /** YAML flow of the block. */
  readonly auth: string;
  readonly more?: readonly string[];
  readonly headers?: Readonly<Record<string, string>>;
  readonly query?: string;
  /** Number of requests; 1 by default. */
  readonly times?: number;
  check(request: Echoed): void | Promise<void>;
}

/** A block with which no request may reach the upstream. */
interface RefusedScene extends Omit<AuthScene, "check"> {
  readonly checkRefused: (gateway: TestGateway) => void | Promise<void>;
}

export interface AuthRow {
  readonly name: string;
  /** Paths below `auth`. */
  readonly fields: readonly string[];
  /** Set for a kind that models do not have. */
  readonly isUnknownToModels?: true;
  arrange(context: ProofContext): Promise<AuthScene | RefusedScene>;
}

/** Asserts that the upstream got the token. */
export function assertBearer({ headers }: Echoed, token: string): void {
  assert.equal(headers["authorization"], `Bearer ${token}`);
}

/** A row in one place: a proof to be run. */
interface PlacedProof {
  readonly fields: readonly string[];
  readonly title: string;
  run(context: ProofContext): Promise<void>;
}

/** @param places by default those whose requests the gateway writes itself */
export function placeRows(rows: readonly AuthRow[], places: readonly Place[] = WRITTEN_PLACES): PlacedProof[] {
  return places.flatMap((place) =>
    rows
      .filter(({ isUnknownToModels }) => isUnknownToModels !== true || place.kind !== "GwModel")
      .map((row) => proofOf(place, row)),
  );
}

function proofOf({ kind, prefix, objects, path, body }: Place, { name, fields, arrange }: AuthRow): PlacedProof {
  return {
    fields: fields.map((field) => `${prefix}.${field}`),
    title: `the upstream gets ${name} (${kind})`,
    async run(context) {
      const scene = await arrange(context);
      const { auth, more = [], headers = {}, query = "", times = 1 } = scene;
      const echo = await startEcho(context);
      const gateway = await startGateway(context, documents(MODEL_GATEWAY, objects(echo.port, auth), ...more));
      const sent = { "content-type": "application/json", accept: "application/json, text/event-stream", ...headers };
      for (let time = 0; time < times; time++)
        await call(gateway.url() + path + query, { method: "POST", headers: sent, body: JSON.stringify(body) });
      if (!("check" in scene)) {
        assert.equal(echo.seen.length, 0, "something arrived");
        return scene.checkRefused(gateway);
      }
      return scene.check(echo.seen[0] ?? assert.fail("nothing arrived"));
    },
  };
}
