/** Sessions belong to who opened them, however the caller was verified: for others they do not exist. */
import assert from "node:assert/strict";
import { request, type RequestOptions } from "node:https";
import { test } from "node:test";
import { createAuthority, createLeaf } from "../../../src/lib/certificates/x509.ts";
import { call, type Answer, type Call } from "../../support/clients/http.ts";
import { INITIALIZE, MCP_HEADERS } from "../../support/clients/mcp.ts";
import { createIssuer, keySet } from "../../support/fixtures/tokens.ts";
import {
  documents,
  GATEWAY,
  gatewayOf,
  pemObject,
  route,
  routePolicy,
  startGateway,
} from "../../support/gateway/gateway.ts";
import { contextOf, type ProofContext } from "../../support/proofs/prove.ts";
import { startMcpServer } from "../../support/servers/mcp-server.ts";
import { createSelfSigned, validNow } from "../../support/servers/tls-upstream.ts";

const PING = JSON.stringify({ jsonrpc: "2.0", id: 2, method: "ping" });
const ANSWER = JSON.stringify({ jsonrpc: "2.0", id: 7, result: {} });

/** Sends a request to the MCP endpoint as one of the users. */
type Ask = (user: "ann" | "eve" | "nobody", what: Call) => Promise<Answer>;

/** Starts a gateway that knows two users, and admits callers without a name. */
type Start = (t: ProofContext, port: number) => Promise<Ask>;

function backend(port: number): string {
  return `
apiVersion: gwproxy.dev/v1alpha1
kind: GwBackend
metadata: {name: tools}
spec: {mcp: {targets: [{name: one, static: {host: 127.0.0.1, port: ${port}}}]}}
`;
}

/** Users who are told apart by a header. @param traffic flow YAML */
async function startWith(
  t: ProofContext,
  port: number,
  traffic: string,
  credentials: Readonly<Record<"ann" | "eve", string>>,
): Promise<Ask> {
  const policy = routePolicy("users", "tools", `  traffic: ${traffic}`);
  const gateway = await startGateway(t, documents(GATEWAY, backend(port), route("tools", "tools"), policy));
  const { nobody, ...known } = { nobody: undefined, ...credentials };
  return (user, { headers, ...what }) => {
    const authorization: string | undefined = user === "nobody" ? nobody : known[user];
    const own: Record<string, string> = authorization === undefined ? {} : { authorization };
    return call(`${gateway.url()}/mcp`, { ...what, headers: { ...headers, ...own } });
  };
}

const startJwt: Start = async (t, port) => {
  const issuer = await createIssuer("https://issuer.test");
  const provider = `{issuer: "${issuer.name}", jwks: {inline: '${keySet(issuer.jwk)}'}}`;
  return startWith(t, port, `{jwtAuthentication: {mode: Optional, providers: [${provider}]}}`, {
    ann: `Bearer ${await issuer.token({ sub: "ann" })}`,
    eve: `Bearer ${await issuer.token({ sub: "eve" })}`,
  });
};

/** Both have the password "secret". */
const startBasic: Start = (t, port) => {
  const users = ["ann", "eve"].map((user) => `'${user}:{SHA}5en6G6MezRroT3XKqkdPOmY/BfQ='`);
  const basic = (user: string): string => `Basic ${Buffer.from(`${user}:secret`).toString("base64")}`;
  return startWith(t, port, `{basicAuthentication: {mode: Optional, users: [${users.join(", ")}]}}`, {
    ann: basic("ann"),
    eve: basic("eve"),
  });
};

const startCertificates: Start = async (t, port) => {
  const authority = createAuthority("test", validNow());
  const server = createLeaf(authority, ["a.test"], validNow());
  const users = { ann: createSelfSigned("ann"), eve: createSelfSigned("eve") };
  const validation = '{mode: AllowInsecureFallback, caCertificateRefs: [{group: "", kind: ConfigMap, name: clients}]}';
  const gateway = await startGateway(
    t,
    documents(
      gatewayOf(
        ["{name: a, port: 8443, protocol: HTTPS, hostname: a.test, tls: {certificateRefs: [{name: a}]}}"],
        `\n  tls: {frontend: {default: {validation: ${validation}}}}\n`,
      ),
      pemObject("Secret", "a", { "tls.crt": server.certificate, "tls.key": server.key }),
      pemObject("ConfigMap", "clients", { "ca.crt": users.ann.certificate + users.eve.certificate }),
      backend(port),
      route("tools", "tools"),
    ),
  );
  const url = new URL(gateway.url(8443));
  return (user, { body, ...what }) => {
    const { certificate: cert, key } = user === "nobody" ? {} : users[user];
    const tls = {
      servername: "a.test",
      ca: authority.certificate,
      agent: false,
      ...(key === undefined ? {} : { cert, key }),
    };
    const headers = { ...what.headers, host: "a.test" };
    return ask({ ...tls, ...what, headers, host: url.hostname, port: url.port, path: "/mcp" }, body);
  };
};

function ask(options: RequestOptions, body: string | undefined): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const outgoing = request(options, (response) => {
      let text = "";
      response.on("data", (chunk: Buffer) => (text += chunk.toString()));
      response.on("end", () => resolve({ status: response.statusCode ?? 0, headers: response.headers, body: text }));
    });
    outgoing.on("error", reject);
    outgoing.end(body);
  });
}

const KINDS: readonly (readonly [what: string, start: Start])[] = [
  ["the subject of a JWT", startJwt],
  ["a basic user", startBasic],
  ["a client certificate", startCertificates],
];

for (const [what, start] of KINDS)
  test(`a session belongs to ${what}`, async (t) => {
    const server = await startMcpServer(t);
    const send = await start(contextOf(t), server.port);
    const begun = await send("ann", { method: "POST", headers: MCP_HEADERS, body: INITIALIZE });
    assert.equal(begun.status, 200, begun.body);
    const headers = { ...MCP_HEADERS, "mcp-session-id": String(begun.headers["mcp-session-id"]) };
    const before = server.calls.length;
    for (const user of ["eve", "nobody"] as const) {
      for (const body of [PING, ANSWER])
        assert.equal((await send(user, { method: "POST", headers, body })).status, 404, `${user}: ${body}`);
      assert.equal((await send(user, { headers })).status, 404, `${user}: GET`);
      assert.equal((await send(user, { method: "DELETE", headers })).status, 202, `${user}: DELETE`);
    }
    assert.equal(server.calls.length, before, "nothing of others reaches the server");
    assert.equal((await send("ann", { method: "POST", headers, body: PING })).status, 200);
    // A session that began without a name accepts none later.
    const unnamed = await send("nobody", { method: "POST", headers: MCP_HEADERS, body: INITIALIZE });
    const other = { ...MCP_HEADERS, "mcp-session-id": String(unnamed.headers["mcp-session-id"]) };
    assert.equal((await send("ann", { method: "POST", headers: other, body: PING })).status, 404);
    assert.equal((await send("nobody", { method: "POST", headers: other, body: PING })).status, 200);
  });
