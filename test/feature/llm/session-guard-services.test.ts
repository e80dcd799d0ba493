/** Services that guards ask about what is said in a session over WebSocket, and what is recorded of their verdicts. */
import assert from "node:assert/strict";
import { generateKeyPairSync } from "node:crypto";
import { setEnvironment } from "../../support/fixtures/environment.ts";
import { secret } from "../../support/gateway/backend-auth.ts";
import { staticBackend } from "../../support/gateway/gateway.ts";
import { ADDRESS, answerOf, message, openSession, type Session } from "../../support/gateway/guarded-session.ts";
import { keepLines } from "../../support/gateway/log-lines.ts";
import { createMeasured } from "../../support/gateway/measured.ts";
import { prove, type ProofContext } from "../../support/proofs/prove.ts";
import { startGuardService, startVendorService } from "../../support/servers/guard-service.ts";
import { startTokenServer } from "../../support/servers/token-endpoint.ts";

const HOOK = "webhook: {backendRef: {group: gwproxy.dev, kind: GwBackend, name: hook, port: 80}";
const FAILED = "Content blocked by guardrail policy";
const GREETING = message({ type: "input_text", text: "hello" });

/** Says hello, and asks for an answer. @returns messages of the errors, and whether greeting and answer got through */
async function greet({ client, realtime }: Session): Promise<[errors: string[], isSent: boolean, isAnswered: boolean]> {
  const before = realtime.received.length;
  realtime.says = answerOf(["Good", " day."]);
  client.send(GREETING);
  client.send({ type: "response.create" });
  const events = await client.until("response.done");
  const errors = events.filter(({ type }) => type === "error").map(({ error }) => (error as Error).message);
  const isSent = realtime.received.slice(before).some(({ type }) => type === "conversation.item.create");
  return [errors, isSent, JSON.stringify(events).includes("Good")];
}

/** A service that guards ask, and what it answers to pass and to reject. */
interface AskedService {
  readonly kind: string;
  readonly phases: readonly string[];
  /** Where the vendor has its service; undefined for one of the user's own. */
  readonly host?: string;
  /** Members of the guard as flow YAML. */
  readonly members: string;
  readonly auth?: string;
  readonly pass: object;
  readonly reject: object;
  /** What the client is told, unless it is the message of the guard. */
  readonly told?: string;
}

const BOTH = ["request", "response"];
const SERVICES: readonly AskedService[] = [
  {
    kind: "webhook",
    phases: BOTH,
    members: HOOK.slice("webhook: {".length),
    pass: { action: {} },
    reject: { action: { body: "go away", status_code: 418 } },
    told: "go away",
  },
  {
    kind: "moderation",
    phases: ["request"],
    host: "api.openai.com",
    members: "model: strict",
    auth: "auth: {key: k}",
    pass: { results: [{ flagged: false }] },
    reject: { results: [{ flagged: true }] },
  },
  {
    kind: "guardrailsA",
    phases: BOTH,
    host: "bedrock-runtime.eu-west-1.amazonaws.com",
    members: 'identifier: g, version: "1", region: eu-west-1',
    auth: "auth: {key: k}",
    pass: { action: "NONE" },
    reject: { action: "GUARDRAIL_INTERVENED", outputs: [], assessments: [] },
  },
  {
    kind: "guardrailsB",
    phases: BOTH,
    host: "modelarmor.europe-west4.rep.googleapis.com",
    members: "templateId: t, projectId: p, location: europe-west4",
    auth: "auth: {cloudC: {secretRef: {name: robot}}}",
    pass: { sanitizationResult: { filterMatchState: "NO_MATCH_FOUND", filterResults: {} } },
    reject: { sanitizationResult: { filterMatchState: "MATCH_FOUND", filterResults: {} } },
  },
];

/** Returns the service, the objects that lead to it, and members of a guard that asks it. */
async function startAsked(context: ProofContext, { host, members, auth = "" }: AskedService) {
  if (host === undefined) {
    const service = await startGuardService(context);
    return { service, objects: [staticBackend("hook", service.port)], guard: members };
  }
  const service = await startVendorService(context, host);
  const objects = [service.object, await startRobot(context)];
  return { service, objects, guard: `${members}, policies: {${service.policies}, ${auth}}` };
}

/** Returns a Secret with a service account of cloud C, whose token service answers on loopback. */
async function startRobot(context: ProofContext): Promise<string> {
  const tokens = await startTokenServer(context);
  setEnvironment(context, { GOOGLE_APPLICATION_CREDENTIALS: undefined });
  const account = {
    type: "service_account",
    client_email: "r",
    private_key: RSA,
    private_key_id: "1",
    token_uri: `${tokens.url}/token`,
  };
  return secret("robot", { "credentials.json": JSON.stringify(account) });
}

const RSA = generateKeyPairSync("rsa", { modulusLength: 2048 })
  .privateKey.export({ type: "pkcs8", format: "pem" })
  .toString();

for (const asked of SERVICES)
  for (const phase of asked.phases)
    prove([], `${asked.kind} checks the ${phase} of a session, and fails closed or open`, async (context) => {
      const { kind, pass, reject, told = "withheld" } = asked;
      const { service, objects, guard } = await startAsked(context, asked);
      const open = (members: string): Promise<Session> => {
        const guards = `${phase}: [{${kind}: {${guard}, ${members}}, response: {message: withheld}}]`;
        return openSession(context, guards, { objects });
      };
      const [closing, opening, auditing] = await Promise.all(
        ["failureMode: FailClosed", "failureMode: FailOpen", "action: Audit"].map(open),
      );
      assert.ok(closing && opening && auditing);
      const isRequest = phase === "request";
      for (const session of [closing, opening, auditing]) {
        service.answer = { body: pass };
        assert.deepEqual(await greet(session), [[], true, true]);
        const { length } = service.received;
        service.answer = { body: reject };
        const isAudited: boolean = session === auditing;
        const rejected: unknown[] = [isAudited ? [] : [told], isAudited || !isRequest, isAudited || isRequest];
        assert.deepEqual(await greet(session), rejected);
        assert.equal(service.received.length, length + 1, "the service is asked");
        for (const answer of ["die", { body: "no answer" }] as const) {
          service.answer = answer;
          const failed: unknown[] = session === closing ? [[FAILED], !isRequest, isRequest] : [[], true, true];
          assert.deepEqual(await greet(session), failed);
        }
      }
    });

prove([], "a webhook sees the texts of a session", async (context) => {
  const service = await startGuardService(context);
  const objects = [staticBackend("hook", service.port)];
  const session = await openSession(context, `request: [{${HOOK}}}], response: [{${HOOK}}}]`, { objects });
  await greet(session);
  session.client.send({ type: "session.update", session: { instructions: "be kind" } });
  await greet(session);
  const greeting = { body: { messages: [{ role: "user", content: "hello" }] } };
  const answer = { body: { choices: [{ message: { role: "assistant", content: "Good day." } }] } };
  const instructions = { body: { messages: [{ role: "system", content: "be kind" }] } };
  assert.deepEqual(
    service.received.map(({ body }) => body),
    [greeting, answer, instructions, greeting, answer],
  );
});

prove([], "a webhook that answers with the messages it was sent changes nothing", async (context) => {
  const service = await startGuardService(context);
  const objects = [staticBackend("hook", service.port)];
  const session = await openSession(context, `request: [{${HOOK}}, response: {message: withheld}}]`, { objects });
  const said = (content: string) => ({ body: { action: { body: { messages: [{ role: "user", content }] } } } });
  service.answer = said("hello");
  assert.deepEqual(await greet(session), [[], true, true]);
  service.answer = said("***");
  assert.deepEqual(await greet(session), [["withheld"], false, true]);
});

prove(
  [],
  "what guards did in a session, or with Audit would have done, is in the metric and in the log",
  async (context) => {
    const service = await startGuardService(context);
    service.answer = "die";
    const dead = staticBackend("hook", service.port);
    for (const [phase, guard, outcome, logged] of [
      ["request", "regex: {builtins: [Email], action: Mask}", "Reject", "reject"],
      ["request", "regex: {builtins: [Email], action: Reject}", "Reject", "reject"],
      ["request", "regex: {builtins: [Email], action: Audit}", "AuditMask", "would_mask"],
      ["request", `${HOOK}, failureMode: FailOpen}`, "FailOpen", "fail_open"],
      ["response", "regex: {builtins: [Email], action: Mask}", "Allow", undefined],
      ["response", "regex: {builtins: [Email], action: Reject}", "Reject", "reject"],
      ["response", "regex: {builtins: [Email], action: Audit}", "AuditMask", "would_mask"],
      ["response", `${HOOK}, failureMode: FailOpen}`, "FailOpen", "fail_open"],
    ] as const) {
      const measured = createMeasured();
      const lines = keepLines(context);
      const telemetry = { accessLog: lines.accessLog, metrics: measured.metrics };
      const { client, realtime } = await openSession(context, `${phase}: [{${guard}}]`, { objects: [dead], telemetry });
      realtime.says = answerOf([`mail ${ADDRESS}`]);
      client.send(message({ type: "input_text", text: `mail ${ADDRESS}` }));
      client.send({ type: "response.create" });
      await client.until("response.done");
      client.socket.close();
      const line = await lines.nextFields();
      assert.deepEqual(
        [line["gwp.guardrail.action"], line["gwp.guardrail.phase"]],
        logged === undefined ? [undefined, undefined] : [logged, phase],
        `${phase} ${guard}`,
      );
      const label = phase === "request" ? "Request" : "Response";
      await measured.counted("guardrail_checks_total", 1, { phase: label, action: outcome, route: "default/ai" });
    }
  },
);
