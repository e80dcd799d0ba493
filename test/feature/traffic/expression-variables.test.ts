/** Every variable of expressions asked of a gateway through real sockets, in the places that have it. */
import assert from "node:assert/strict";
import { createServer } from "node:http";
import { request, type RequestOptions } from "node:https";
import type { AddressInfo } from "node:net";
import type { TLSSocket } from "node:tls";
import { test } from "node:test";
import { environmentOf, type CelPhase } from "../../../src/cel/environments/phases.ts";
import type { Telemetry } from "../../../src/proxy/observability/record.ts";
import { createAuthority, createLeaf } from "../../../src/lib/certificates/x509.ts";
import {
  documents,
  GATEWAY,
  gatewayOf,
  gatewayPolicy,
  pemObject,
  route,
  routePolicy,
  startGateway,
  staticBackend,
} from "../../support/gateway/gateway.ts";
import { keepLines } from "../../support/gateway/log-lines.ts";
import { call } from "../../support/clients/http.ts";
import { contextOf, type ProofContext } from "../../support/proofs/prove.ts";
import { createSelfSigned, validNow } from "../../support/servers/tls-upstream.ts";
import { createIssuer, keySet } from "../../support/fixtures/tokens.ts";
import {
  EXPECTED,
  LLM_EXPECTED,
  LLM_NOT_YET,
  NOT_YET,
  askAll,
  holdAll,
  leavesOf,
  reasonOf,
  type Expected,
} from "../../support/fixtures/variable-table.ts";

const AUTHORITY = createAuthority("test", validNow());
const SERVER = createLeaf(AUTHORITY, ["a.test"], validNow());
const CLIENT = createSelfSigned("cart", "DNS:cart.test,URI:spiffe://mesh.test/ns/shop/sa/cart,IP:10.1.2.3");
const ISSUER = await createIssuer("https://issuer.test");

const SECURE_GATEWAY = gatewayOf(
  ["{name: a, port: 8443, protocol: HTTPS, hostname: a.test, tls: {certificateRefs: [{name: a}]}}"],
  `
  tls:
    frontend:
      default:
        validation: {mode: AllowInsecureFallback, caCertificateRefs: [{group: "", kind: ConfigMap, name: clients}]}
`,
);

const OBJECTS = [
  SECURE_GATEWAY,
  pemObject("Secret", "a", { "tls.crt": SERVER.certificate, "tls.key": SERVER.key }),
  pemObject("ConfigMap", "clients", { "ca.crt": CLIENT.certificate }),
  `
apiVersion: v1
kind: Secret
metadata: {name: keys}
stringData: {alice: alice-key}
`,
];

/** Members of `traffic` that fill what policies fill. */
const IDENTITY = [
  `jwtAuthentication: {providers: [{issuer: "${ISSUER.name}", jwks: {inline: '${keySet(ISSUER.jwk)}'}}]}`,
  `apiKeyAuthentication: {secretRef: {name: keys}, location: {header: {name: x-key}}}`,
  `basicAuthentication: {users: ['ann:{SHA}5en6G6MezRroT3XKqkdPOmY/BfQ='], location: {header: {name: x-basic}}}`,
  `extAuth: {backendRef: {group: gwproxy.dev, kind: GwBackend, name: check}, http: {responseMetadata: {verdict: 'response.headers["x-verdict"]'}}}`,
].join(", ");

/** @param traffic of the policy that asks, without what sets identities */
interface Asked {
  readonly place: CelPhase;
  readonly traffic: (ask: string) => string;
}

const NOTE = `request: {metadata: {note: '"noted"'}}`;
const PLACES_ASKED: readonly Asked[] = [
  {
    place: "request",
    traffic: (ask) => `transformation: {${NOTE}}, directResponse: {status: 200, bodyExpression: ${ask}}`,
  },
  {
    place: "gateway",
    traffic: (ask) =>
      `phase: PreRouting, transformation: {request: {metadata: {note: '"noted"'}, set: [{name: x-asked, value: ${ask}}]}, ` +
      `response: {body: 'request.headers["x-asked"]'}}`,
  },
  { place: "response", traffic: (ask) => `transformation: {${NOTE}, response: {body: ${ask}}}` },
];

async function startUpstream(context: ProofContext): Promise<number> {
  const server = createServer((incoming, response) => {
    incoming.resume();
    response.writeHead(207, { "x-upstream": "here", "grpc-status": "5" }).end("from the upstream");
  });
  return listen(context, server);
}

async function startChecker(context: ProofContext): Promise<number> {
  const server = createServer((_incoming, response) => void response.writeHead(200, { "x-verdict": "fine" }).end());
  return listen(context, server);
}

async function listen(context: ProofContext, server: ReturnType<typeof createServer>): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  context.after(() => {
    server.closeAllConnections();
    server.close();
  });
  // A TCP server's address is one.
  return (server.address() as AddressInfo).port;
}

interface Asking extends RequestOptions {
  readonly session?: Buffer;
  /** Told of each ticket that resumes the connection. */
  readonly keep?: (session: Buffer) => void;
  /** Takes down whether the connection was resumed. */
  readonly reused?: boolean[];
}

/** One request as the table describes it. @param options over those of the client that has a certificate */
async function ask(port: number, asking: Asking = {}): Promise<Record<string, unknown>> {
  const text = await answerTo(port, asking);
  assert.match(text, /^\{/);
  return JSON.parse(text) as Record<string, unknown>;
}

async function answerTo(port: number, { keep, reused, ...options }: Asking = {}): Promise<string> {
  const headers = {
    host: "a.test",
    "x-test": "yes",
    authorization: `Bearer ${await ISSUER.token()}`,
    "x-key": "alice-key",
    "x-basic": Buffer.from("ann:secret").toString("base64"),
  };
  const shown = { cert: CLIENT.certificate, key: CLIENT.key };
  const tls = { servername: "a.test", ca: AUTHORITY.certificate, agent: false, ...shown, ...options };
  return await new Promise<string>((resolve, reject) => {
    const outgoing = request(
      { host: "127.0.0.1", port, path: "/things?x=1", method: "POST", headers, ...tls },
      (response) => {
        let body = "";
        response.setEncoding("utf8").on("data", (chunk: string) => (body += chunk));
        response.on("end", () => resolve(body));
      },
    );
    outgoing.on("socket", (socket) => {
      // A request over HTTPS has a TLS socket.
      const secure = socket as TLSSocket;
      if (keep !== undefined) secure.on("session", keep);
      secure.on("secureConnect", () => reused?.push(secure.isSessionReused()));
    });
    outgoing.on("error", reject);
    outgoing.end("payload");
  });
}

/** Each path has the value of the table, or is excused by name; what is excused has none. */
function compare(
  paths: readonly string[],
  values: Readonly<Record<string, unknown>>,
  expected: Readonly<Record<string, Expected>>,
  notYet: Readonly<Record<string, string>>,
): void {
  for (const path of paths) {
    const value = values[path];
    const wanted = expected[path];
    if (wanted === undefined) {
      assert.ok(reasonOf(path, notYet) !== undefined, `${path} is declared, and nothing is said about its value`);
      assert.equal(value, "absent", `${path} has a value by now: say which one it has to be`);
    } else if (wanted.is instanceof RegExp) assert.match(String(value), wanted.is, path);
    else assert.deepEqual(value, wanted.is, path);
  }
}

/** A whole text as a YAML value. */
const quoted = (text: string): string => `'${text.replaceAll("'", "''")}'`;

async function serve(context: ProofContext, policy: string, telemetry: Telemetry = {}): Promise<number> {
  const backends = [
    staticBackend("web", await startUpstream(context)),
    staticBackend("check", await startChecker(context)),
  ];
  const objects = documents(...OBJECTS, ...backends, route("web", "web"), policy);
  const gateway = await startGateway(context, objects, { telemetry });
  assert.deepEqual(gateway.problems(), []);
  return Number(new URL(gateway.url(8443)).port);
}

for (const { place, traffic } of PLACES_ASKED) {
  test(`every variable of the ${place} phase has its value`, async (t) => {
    const paths = leavesOf(environmentOf(place)).filter((path) => !path.startsWith("llm."));
    const says = `  traffic: {${IDENTITY}, ${traffic(quoted(`toJson(${askAll(paths, EXPECTED)})`))}}`;
    const policy = place === "gateway" ? gatewayPolicy("asks", says) : routePolicy("asks", "web", says);
    const port = await serve(contextOf(t), policy);
    const values = await ask(port);
    compare(paths, values, EXPECTED, NOT_YET);
    assert.equal(values["destination.port"] ?? port, port);
  });
}

test("every variable has its value when a request is over", async (t) => {
  const context = contextOf(t);
  const paths = leavesOf(environmentOf("log")).filter((path) => !path.startsWith("llm."));
  const identity = routePolicy("identity", "web", `  traffic: {${IDENTITY}, transformation: {${NOTE}}}`);
  const all = `{name: all, expression: ${quoted(`toJson(${askAll(paths, EXPECTED)})`)}}`;
  const log = gatewayPolicy("log", `  frontend: {accessLog: {attributes: {add: [${all}]}}}`);
  const { accessLog, nextFields } = keepLines(context);
  const port = await serve(context, documents(identity, log), { accessLog });
  await answerTo(port);
  const { all: values } = await nextFields();
  compare(paths, JSON.parse(String(values)) as Record<string, unknown>, EXPECTED, NOT_YET);
});

test("every variable of a connection has its value before anything of it is read", async (t) => {
  const paths = leavesOf(environmentOf("connection"));
  // Admission refuses a Deny that reads what never has a value.
  const denying = holdAll(
    paths.filter((path) => !path.startsWith("source.unverifiedWorkload")),
    EXPECTED,
    NOT_YET,
  );
  const rule = (action: string, condition: string): string =>
    gatewayPolicy(
      "asks",
      `  frontend: {networkAuthorization: {action: ${action}, policy: {matchExpressions: [${quoted(condition)}]}}}
  traffic: {directResponse: {status: 200, body: "{}"}}`,
    );
  assert.deepEqual(await ask(await serve(contextOf(t), rule("Require", holdAll(paths, EXPECTED, NOT_YET)))), {});
  await assert.rejects(ask(await serve(contextOf(t), rule("Deny", denying))), /socket hang up|ECONNRESET/);
});

test("nobody vouches for a certificate that no authority of the listener signed, whatever it says", async (t) => {
  const fields = ["certificate", "spiffeId", "subjectAltNames", "issuer", "subject", "subjectCn"];
  const paths = [...fields.map((field) => `source.${field}`), "source.identity.namespace"];
  const says = `  traffic: {directResponse: {status: 200, bodyExpression: ${quoted(askAll(paths, EXPECTED))}}}`;
  const port = await serve(contextOf(t), routePolicy("asks", "web", says));
  const liar = createSelfSigned("cart", "URI:spiffe://mesh.test/ns/shop/sa/cart");
  const { "source.certificate": shown, ...names } = await ask(port, { cert: liar.certificate, key: liar.key });
  assert.equal(String(shown).replaceAll("\n", ""), liar.certificate.replaceAll("\n", ""));
  assert.deepEqual(new Set(Object.values(names)), new Set(["absent"]));
  const none = await ask(port, { cert: undefined, key: undefined });
  assert.deepEqual(new Set(Object.values(none)), new Set(["absent"]));
});

test("a resumed connection is as much the client's as the first one, and without a certificate it is nobody's", async (t) => {
  const paths = ["source.spiffeId", "source.subjectCn"];
  const says = `  traffic: {directResponse: {status: 200, bodyExpression: ${quoted(askAll(paths, EXPECTED))}}}`;
  const port = await serve(contextOf(t), routePolicy("asks", "web", says));
  const known = ["spiffe://mesh.test/ns/shop/sa/cart", "cart"];
  for (const [options, values] of [
    [{}, known],
    [{ cert: undefined, key: undefined }, ["absent", "absent"]],
  ] as const) {
    const sessions: Buffer[] = [];
    const keep = (session: Buffer): void => void sessions.push(session);
    assert.deepEqual(Object.values(await ask(port, { ...options, keep })), values);
    const session = sessions.at(-1);
    assert.ok(session, "no ticket");
    const reused: boolean[] = [];
    const seen = await ask(port, { ...options, session, reused });
    assert.deepEqual([Object.values(seen), reused], [values, [true]]);
  }
});

test("every field of llm has its value once a provider has answered", async (t) => {
  const context = contextOf(t);
  const provider = createServer((incoming, response) => {
    incoming.resume();
    const usage = {
      prompt_tokens: 10,
      completion_tokens: 4,
      total_tokens: 14,
      prompt_tokens_details: { cached_tokens: 3 },
      completion_tokens_details: { reasoning_tokens: 2 },
    };
    const choices = [{ index: 0, message: { role: "assistant", content: "hi" }, finish_reason: "stop" }];
    response.setHeader("content-type", "application/json");
    response.end(JSON.stringify({ object: "chat.completion", model: "of-the-provider", choices, usage }));
  });
  const paths = leavesOf(environmentOf("response")).filter((path) => path.startsWith("llm."));
  const backend = `
apiVersion: gwproxy.dev/v1alpha1
kind: GwBackend
metadata: {name: ai}
spec: {ai: {provider: {llma: {}, host: 127.0.0.1, port: ${await listen(context, provider)}}}}
`;
  const says = `  traffic: {transformation: {response: {body: ${quoted(askAll(paths, LLM_EXPECTED))}}}}`;
  const objects = documents(GATEWAY, backend, route("ai", "ai"), gatewayPolicy("asks", says));
  const gateway = await startGateway(context, objects);
  assert.deepEqual(gateway.problems(), []);
  const numbers = { temperature: 1, top_p: 0.5, frequency_penalty: 0.25, presence_penalty: -1 };
  const others = { seed: 7, max_completion_tokens: 64, dimensions: 256, encoding_format: "float" };
  const chat = { model: "of-the-client", messages: [{ role: "user", content: "hi" }], ...numbers, ...others };
  const headers = { "content-type": "application/json" };
  const body = JSON.stringify(chat);
  const answer = await call(`${gateway.url()}/v1/chat/completions`, { method: "POST", headers, body });
  compare(paths, JSON.parse(answer.body) as Record<string, unknown>, LLM_EXPECTED, LLM_NOT_YET);
});
