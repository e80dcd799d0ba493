/**
 * Places of an `auth` block that clients do not reach with requests of their own form: MCP targets and models. A row is
 * one kind of authentication in one form; what the upstream receives tells whether every field of it took effect.
 */
import assert from "node:assert/strict";
import { call } from "../clients/http.ts";
import type { ProofContext } from "../proofs/prove.ts";
import { startEcho, type Echoed } from "../servers/echo.ts";
import { documents, route, startGateway } from "./gateway.ts";
import { gwModel, MODEL_GATEWAY, service } from "./models.ts";

/** A place whose requests the gateway writes itself. */
interface Place {
  readonly kind: string;
  readonly prefix: string;
  objects(port: number, auth: string): string;
  readonly path: string;
  readonly body: object;
}

const PLACES: readonly Place[] = [
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

/** One request through a gateway, and what has to be true of it then. */
export interface AuthScene {
  /** YAML flow of the block. */
  readonly auth: string;
  readonly more?: readonly string[];
  readonly headers?: Readonly<Record<string, string>>;
  check(request: Echoed): void | Promise<void>;
}

export interface AuthRow {
  readonly name: string;
  /** Paths below `auth`. */
  readonly fields: readonly string[];
  /** Set for a kind that models do not have. */
  readonly isForTargetsOnly?: true;
  arrange(context: ProofContext): Promise<AuthScene>;
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

export function placeRows(rows: readonly AuthRow[]): PlacedProof[] {
  return PLACES.flatMap((place) =>
    rows
      .filter(({ isForTargetsOnly }) => isForTargetsOnly !== true || place.kind !== "GwModel")
      .map((row) => proofOf(place, row)),
  );
}

function proofOf({ kind, prefix, objects, path, body }: Place, { name, fields, arrange }: AuthRow): PlacedProof {
  return {
    fields: fields.map((field) => `${prefix}.${field}`),
    title: `the upstream gets ${name} (${kind})`,
    async run(context) {
      const { auth, more = [], headers = {}, check } = await arrange(context);
      const echo = await startEcho(context);
      const gateway = await startGateway(context, documents(MODEL_GATEWAY, objects(echo.port, auth), ...more));
      const sent = { "content-type": "application/json", accept: "application/json, text/event-stream", ...headers };
      await call(gateway.url() + path, { method: "POST", headers: sent, body: JSON.stringify(body) });
      await check(echo.seen[0] ?? assert.fail("nothing arrived"));
    },
  };
}
