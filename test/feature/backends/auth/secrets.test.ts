/**
 * Secrets of every kind of `auth`, with random values, appear nowhere that a person or another service reads: logs at
 * `trace`, access logs, answers, every path of the admin server, metrics, spans, and what is said about objects that
 * cannot be used.
 */
import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { buffer } from "node:stream/consumers";
import { gunzipSync } from "node:zlib";
import fc from "fast-check";
import { ADMIN_PATHS } from "../../../../src/admin/paths/index.ts";
import { call, type Answer } from "../../../support/clients/http.ts";
import { freePorts } from "../../../support/fixtures/free-ports.ts";
import { assertProperty } from "../../../support/fixtures/seed.ts";
import { Secrets, secretBlocks } from "../../../support/gateway/auth-secrets.ts";
import { documents, gatewayOf, gatewayPolicy, route } from "../../../support/gateway/gateway.ts";
import { startGwproxy } from "../../../support/gateway/process.ts";
import { prove, type ProofContext } from "../../../support/proofs/prove.ts";
import { startEcho } from "../../../support/servers/echo.ts";
import { startTokenServer } from "../../../support/servers/token-endpoint.ts";

/** A server that keeps the bytes of what is exported to it. */
async function startSink(context: ProofContext): Promise<{ readonly port: number; readonly received: Buffer[] }> {
  const received: Buffer[] = [];
  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    received.push(await buffer(request));
    response.end();
  };
  const server = createServer((request, response) => void answer(request, response));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  context.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return { port: (server.address() as AddressInfo).port, received };
}

/** Reads the answer of an admin path; profiles are unpacked. */
async function read(url: string): Promise<string> {
  const response = await fetch(url);
  assert.equal(response.status, 200, url);
  const bytes = Buffer.from(await response.arrayBuffer());
  return (bytes.readUInt16BE(0) === GZIP ? gunzipSync(bytes) : bytes).toString("latin1");
}

/** Reads the steps of a request that is sent as soon as the watch is there. */
async function traced(url: string, send: () => Promise<unknown>): Promise<string> {
  const response = await fetch(url);
  assert.ok(response.body !== null, url);
  const chunks: Uint8Array[] = [];
  for await (const chunk of response.body) {
    if (chunks.push(chunk) === 1) await send();
  }
  return Buffer.concat(chunks).toString("latin1");
}

/** First bytes of a gzip file (RFC 1952 2.3.1). */
const GZIP = 0x1f8b;
/** What a path needs to be asked; the others are asked as they are, new ones too. */
const QUERIES: Readonly<Record<string, string | undefined>> = {
  "/debug/pprof/heap": "?seconds=1",
  "/debug/pprof/profile": "?seconds=1",
};

/**
 * Returns the answers of all admin paths but the one that ends the process.
 * @param send sends a request to the route of this name
 */
async function askAdmin(
  origin: string,
  routes: readonly string[],
  send: (name: string) => Promise<unknown>,
): Promise<Record<string, string>> {
  const answers: Record<string, string> = { "/": await read(`${origin}/`) };
  for (const path of Object.keys(ADMIN_PATHS).filter((name) => name !== "/quitquitquit")) {
    const texts: string[] = [];
    if (path === "/explain")
      for (const name of routes) texts.push(await read(`${origin}${path}?route=default/${name}`));
    else if (path === "/debug/trace")
      for (const name of routes) texts.push(await traced(origin + path, () => send(name)));
    else texts.push(await read(`${origin}${path}${QUERIES[path] ?? ""}`));
    answers[path] = texts.join("\n");
  }
  return answers;
}

async function checkRun(context: ProofContext, seed: number): Promise<void> {
  const secrets = new Secrets(seed);
  const echo = await startEcho(context);
  const server = await startTokenServer(context);
  let isFailing = false;
  server.reply = ({ path, form }) => {
    const body = secrets.make(`failure of ${path}`);
    if (isFailing) return { status: 503, body };
    const token = { access_token: secrets.make(`token of ${path}`) };
    const isJag = form.get("requested_token_type")?.endsWith("id-jag") === true;
    return {
      members: isJag ? { ...token, issued_token_type: form.get("requested_token_type"), token_type: "N_A" } : token,
    };
  };
  const sink = await startSink(context);
  const { auth, objects } = secretBlocks(secrets, server.url);
  const [port = 0, admin = 0, metrics = 0] = await freePorts(3);
  const backends = Object.entries(auth).map(
    ([name, block]) => `
apiVersion: gwproxy.dev/v1alpha1
kind: GwBackend
metadata: {name: ${name}}
spec: {static: {host: 127.0.0.1, port: ${echo.port}}, policies: {auth: ${block}}}
`,
  );
  const collector = `url: "http://127.0.0.1:${sink.port}", protocol: HTTP`;
  const manifests = documents(
    gatewayOf([`{name: http, port: ${port}, protocol: HTTP}`]),
    gatewayPolicy(
      "telemetry",
      `  frontend: {tracing: {${collector}, randomSampling: "true"}, accessLog: {otlp: {${collector}}}}`,
    ),
    ...backends,
    ...Object.keys(auth).map((name) => route(name, name, `/${name}`)),
    ...objects,
  );
  const folder = mkdtempSync(join(tmpdir(), "gwproxy-secrets-"));
  context.after(() => rmSync(folder, { recursive: true, force: true }));
  writeFileSync(join(folder, "all.yaml"), manifests);
  const addresses = ["--admin-address", `127.0.0.1:${admin}`, "--metrics-address", `127.0.0.1:${metrics}`];
  const gwproxy = startGwproxy(
    context,
    ["up", "-f", folder, "--log-level", "trace", "--readiness-address", "127.0.0.1:0", ...addresses],
    { AZURE_AUTHORITY_HOST: server.url },
  );
  await gwproxy.printed(`:${port} for Gateway default/gw`);

  const send = (name: string, round: string, method = "GET"): Promise<Answer> => {
    const headers = { authorization: `Bearer ${secrets.make(`${round} token of the client of ${name}`)}` };
    return call(`http://127.0.0.1:${port}/${name}`, { method, headers });
  };
  const answers: string[] = [];
  for (const round of ["good", "failing"]) {
    isFailing = round === "failing";
    for (const name of Object.keys(auth)) {
      const { status, body } = await send(name, round);
      if (status !== 200) answers.push(body);
    }
  }
  assert.ok(echo.seen.length >= 2 * 10 - 4, `${echo.seen.length} requests arrived`);
  const arrived = secrets.findIn(JSON.stringify(echo.seen));
  for (const what of ["inline key", "session token", "token of /token", "token of /as"])
    assert.ok(arrived.includes(what), `${what} is used`);

  const places: Readonly<Record<string, string>> = {
    answers: answers.join("\n"),
    // The steps show bodies, and the echo's would repeat what it got.
    ...(await askAdmin(`http://127.0.0.1:${admin}`, Object.keys(auth), (name) => send(name, "traced", "HEAD"))),
    metrics: await read(`http://127.0.0.1:${metrics}/metrics`),
  };
  assert.match(places["/debug/trace"] ?? "", /"authorization"/i, "the steps name the fields of requests");
  await gwproxy.kill("SIGTERM");
  const exported = Buffer.concat(sink.received).toString("latin1");
  for (const [place, text] of Object.entries({ ...places, exported, logs: gwproxy.output() })) {
    assert.ok(text.length > 0, `${place} is empty`);
    assert.deepEqual(secrets.findIn(text), [], place);
  }
  assert.match(gwproxy.output(), /is not an unencrypted private key/, "the broken key is reported without its text");
}

prove([], "no secret and no token appears in logs, answers, dumps, metrics or spans", (context) =>
  assertProperty(
    fc.asyncProperty(fc.integer(), (seed) => checkRun(context, seed)),
    { numRuns: 2, endOnFailure: true },
  ),
);
