/**
 * Secrets of every kind of `auth`, with random values, appear nowhere that a person or another service reads: logs at
 * `trace`, access logs, answers, dumps, metrics, spans, and what is said about objects that cannot be used.
 */
import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { buffer } from "node:stream/consumers";
import fc from "fast-check";
import { call } from "../../../support/clients/http.ts";
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

  const answers: string[] = [];
  for (const round of ["good", "failing"]) {
    isFailing = round === "failing";
    for (const name of Object.keys(auth)) {
      const headers = { authorization: `Bearer ${secrets.make(`${round} token of the client of ${name}`)}` };
      const { status, body } = await call(`http://127.0.0.1:${port}/${name}`, { headers });
      if (status !== 200) answers.push(body);
    }
  }
  assert.ok(echo.seen.length >= 2 * 10 - 4, `${echo.seen.length} requests arrived`);
  const arrived = secrets.findIn(JSON.stringify(echo.seen));
  for (const what of ["inline key", "session token", "token of /token", "token of /as"])
    assert.ok(arrived.includes(what), `${what} is used`);

  const dump = async (url: string): Promise<string> => (await call(url)).body;
  const places: Readonly<Record<string, string>> = {
    answers: answers.join("\n"),
    "config dump": await dump(`http://127.0.0.1:${admin}/config_dump`),
    metrics: await dump(`http://127.0.0.1:${metrics}/metrics`),
  };
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
