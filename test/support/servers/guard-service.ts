/** Services that prompt guards ask: one of the user's own, and those of vendors at their host names. */
import assert from "node:assert/strict";
import type { ServerResponse } from "node:http";
import { createServer as createSecureServer } from "node:https";
import { createAuthority, createLeaf } from "../../../src/lib/certificates/x509.ts";
import { pemObject } from "../gateway/gateway.ts";
import type { ProofContext } from "../proofs/prove.ts";
import { startForwardProxy, type ForwardProxy } from "./forward-proxy.ts";
import { startSocket } from "./grpc.ts";
import { startScripted, type Received, type ScriptedServer } from "./scripted-server.ts";
import { validNow } from "./tls-upstream.ts";

export interface GuardService extends ScriptedServer {
  /** What it answers next: a status and a body, nothing at all, or a broken connection. */
  answer: { readonly status?: number; readonly body: unknown } | "hang" | "die";
}

function scriptOf(service: { answer: GuardService["answer"] }): (request: Received, response: ServerResponse) => void {
  return (_request, response) => {
    const { answer } = service;
    if (answer === "hang") return;
    if (answer === "die") return void response.destroy();
    const { status = 200, body } = answer;
    response.writeHead(status, { "content-type": "application/json" });
    response.end(typeof body === "string" ? body : JSON.stringify(body));
  };
}

export async function startGuardService(context: ProofContext): Promise<GuardService> {
  const script: { answer: GuardService["answer"] } = { answer: { body: { action: {} } } };
  const { port, received } = await startScripted(context, scriptOf(script));
  return Object.assign(script, { port, received });
}

/** A vendor's guard service at its own host name, behind a proxy for tunnels that finds it. */
export interface VendorService extends GuardService {
  readonly tunnel: ForwardProxy;
  /** Flow YAML of `policies` with which the service is reached, without braces. */
  readonly policies: string;
  /** The ConfigMap with the authority of its certificate. */
  readonly object: string;
}

/** @param isDeaf whether connections are accepted and never secured */
export async function startVendorService(
  context: ProofContext,
  host: string,
  { isDeaf = false }: { readonly isDeaf?: boolean } = {},
): Promise<VendorService> {
  const authority = createAuthority("vendor authority", validNow());
  const { certificate, key } = createLeaf(authority, [host], validNow());
  const script: { answer: GuardService["answer"] } = { answer: { body: {} } };
  const { port, received } = await startScripted(context, scriptOf(script), (listener) =>
    createSecureServer({ cert: certificate, key }, listener),
  );
  const place = isDeaf ? await startSocket(context) : port;
  const tunnel = await startForwardProxy(context, { places: { [`${host}:443`]: `127.0.0.1:${place}` } });
  return Object.assign(script, {
    port,
    received,
    tunnel,
    policies: `tls: {caCertificateRefs: [{name: vendor}]}, tunnel: {url: "http://127.0.0.1:${tunnel.port}", mode: Connect}`,
    object: pemObject("ConfigMap", "vendor", { "ca.crt": authority.certificate }),
  });
}

/** Unusable answers of a vendor. */
export const BAD_VENDOR_ANSWERS: readonly GuardService["answer"][] = [
  "die",
  { status: 500, body: { results: [{ flagged: false }], action: "NONE" } },
  { body: "not json" },
  { body: {} },
  ...[
    { results: [], action: "SOMETHING" },
    { results: [{ flagged: "no" }], action: 1 },
  ].map((body) => ({ body })),
];

/** Unusable answers of a webhook. */
export const BAD_ANSWERS: readonly GuardService["answer"][] = [
  "die",
  { body: "not json" },
  { body: [] },
  { body: {} },
  { body: { action: "pass" } },
  { body: { action: { body: { neither: [] } } } },
  { body: { action: { body: { messages: [{ role: "user" }], choices: [{ message: {} }] } } } },
  { body: { action: { body: "no status" } } },
  ...[99, "403"].map((status_code) => ({ body: { action: { body: "bad status", status_code } } })),
];

/** Returns the newest request that reached a guard service. */
export function newest({ received }: GuardService): GuardService["received"][number] {
  const last = received.at(-1);
  assert.ok(last, "nothing reached the guard service");
  return last;
}
