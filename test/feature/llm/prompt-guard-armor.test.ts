/** The guard `guardrailsB` against a fake of Google Model Armor at its own host, through real sockets. */
import assert from "node:assert/strict";
import { generateKeyPairSync } from "node:crypto";
import { gatewayPolicy } from "../../support/gateway/gateway.ts";
import { secret } from "../../support/gateway/backend-auth.ts";
import { GUARD_PLACES, said, startGuarded, type Guarded } from "../../support/gateway/guarded.ts";
import { setEnvironment } from "../../support/fixtures/environment.ts";
import { prove, type ProofContext } from "../../support/proofs/prove.ts";
import { newest, startVendorService, type GuardService } from "../../support/servers/guard-service.ts";
import { startTokenServer } from "../../support/servers/token-endpoint.ts";

const HOST = "modelarmor.europe-west4.rep.googleapis.com";
const RSA = generateKeyPairSync("rsa", { modulusLength: 2048 })
  .privateKey.export({ type: "pkcs8", format: "pem" })
  .toString();
const CHAT = {
  messages: [
    { role: "system", content: "be kind" },
    { role: "user", content: "tell me" },
  ],
};
/** Longer than the limits of the guard, and far shorter than its default. */
const LIMIT = gatewayPolicy("limit", "  traffic: {timeouts: {request: 3s}}");

const PHASES = [
  { phase: "request", method: "sanitizeUserPrompt", member: "user_prompt_data", text: "be kind\ntell me" },
  { phase: "response", method: "sanitizeModelResponse", member: "model_response_data", text: "a\nb" },
] as const;

const sanitized = (result: object): GuardService["answer"] => ({ body: { sanitizationResult: result } });
const CLEAN = sanitized({ filterMatchState: "NO_MATCH_FOUND", filterResults: {}, invocationResult: "SUCCESS" });
const HIT = { matchState: "MATCH_FOUND", executionState: "EXECUTION_SUCCESS" };
const PARTIAL = "PARTIAL";

/** Answers that reject: each filter nests its state in another way, and results are a map or a list. */
const REJECTIONS: readonly object[] = [
  { filterMatchState: "MATCH_FOUND", filterResults: {}, invocationResult: "SUCCESS" },
  { filterResults: { rai: { raiFilterResult: { raiFilterTypeResults: { dangerous: HIT } } } } },
  { filterResults: [{ sdpFilterResult: { inspectResult: HIT } }], invocationResult: PARTIAL },
  { filterResults: { pi_and_jailbreak: { piAndJailbreakFilterResult: HIT } } },
];

/** Answers from which nothing can be learned. */
const UNUSABLE: readonly GuardService["answer"][] = [
  "die",
  { status: 500, body: { sanitizationResult: {} } },
  { status: 403, body: { error: { code: 403, message: "no", status: "PERMISSION_DENIED" } } },
  { body: "not json" },
  { body: {} },
  { body: { sanitizationResult: "no" } },
  sanitized({ filterMatchState: "NO_MATCH_FOUND", invocationResult: PARTIAL }),
  sanitized({ filterMatchState: "NO_MATCH_FOUND", invocationResult: "FAILURE" }),
];

interface Identity {
  /** Flow YAML of `auth`. */
  readonly auth: string;
  readonly object: string;
  readonly calls: readonly { readonly form: URLSearchParams }[];
}

/** A service account in a Secret, whose token service answers on loopback. */
async function startIdentity(context: ProofContext, members = ""): Promise<Identity> {
  const cloud = await startTokenServer(context);
  const idToken = ["{}", '{"exp": 99999999999}', "x"].map((text) => Buffer.from(text).toString("base64url")).join(".");
  cloud.reply = () => ({ members: { id_token: idToken } });
  setEnvironment(context, { GOOGLE_APPLICATION_CREDENTIALS: undefined });
  const account = (name: string): string =>
    JSON.stringify({
      type: "service_account",
      client_email: name,
      private_key: RSA,
      private_key_id: "k1",
      token_uri: `${cloud.url}/token`,
    });
  const auth = `{cloudC: {secretRef: {name: robot, key: second}${members}}}`;
  const object = secret("robot", { "credentials.json": account("first"), second: account("second") });
  return { auth, object, calls: cloud.calls };
}

interface Setup {
  readonly place: (typeof GUARD_PLACES)[number];
  readonly phase: string;
  readonly service: Awaited<ReturnType<typeof startVendorService>>;
  readonly identity: Identity;
}

/** @param more flow YAML: members of the guard, and of its policies */
function withArmor(
  context: ProofContext,
  { place, phase, service, identity }: Setup,
  more: { readonly members?: string; readonly policies?: string } = {},
): Promise<Guarded> {
  const policies = `policies: {${service.policies}, auth: ${identity.auth}${more.policies ?? ""}}`;
  const named = `templateId: t/1, projectId: p 1, location: europe-west4${more.members ?? ""}`;
  return startGuarded(context, `{${phase}: [{guardrailsB: {${named}, ${policies}}}]}`, {
    place,
    objects: [service.object, identity.object, LIMIT],
    answer: said("a", "b"),
  });
}

for (const place of GUARD_PLACES)
  for (const { phase, method, member, text } of PHASES) {
    const fields = (...names: readonly string[]): string[] =>
      names.map((name) => place.field(`${phase}[].guardrailsB.${name}`));

    prove(
      fields(
        "templateId",
        "projectId",
        "location",
        "action",
        "failureMode",
        "policies.tls.caCertificateRefs[].name",
        "policies.tunnel.url",
      ),
      `guardrails of cloud C see the text of the ${phase} at their own host, and reject`,
      async (context) => {
        const service = await startVendorService(context, HOST);
        const setup = { place, phase, service, identity: await startIdentity(context) };
        service.answer = CLEAN;
        const open = await withArmor(context, setup, { members: ", failureMode: FailOpen" });
        assert.equal((await open.chat(CHAT)).status, 200);
        const asked = newest(service);
        assert.equal(asked.path, `/v1/projects/p%201/locations/europe-west4/templates/t%2F1:${method}`);
        assert.match(asked.headers.authorization ?? "", /^Bearer minted-1$/);
        assert.deepEqual(asked.body, { [member]: { text } });
        assert.deepEqual(service.tunnel.asked, [`CONNECT ${HOST}:443`]);
        for (const result of REJECTIONS) {
          service.answer = sanitized(result);
          assert.equal((await open.chat(CHAT)).status, 403, JSON.stringify(result));
        }
        const audited = await withArmor(context, setup, { members: ", action: Audit" });
        assert.equal((await audited.chat(CHAT)).status, 200);
        const closed = await withArmor(context, setup, { members: ", failureMode: FailClosed" });
        for (const answer of UNUSABLE) {
          service.answer = answer;
          assert.equal((await open.chat(CHAT)).status, 200, JSON.stringify(answer));
          assert.equal((await closed.chat(CHAT)).status, 503, JSON.stringify(answer));
        }
      },
    );

    prove(
      ["secretRef.name", "secretRef.key", "type", "audience"].flatMap((name) => fields(`policies.auth.cloudC.${name}`)),
      `guardrails of cloud C of the ${phase} get a token of the service account`,
      async (context) => {
        const service = await startVendorService(context, HOST);
        const identity = await startIdentity(context, ", type: IdToken, audience: https://own.test");
        service.answer = CLEAN;
        const guarded = await withArmor(context, { place, phase, service, identity });
        assert.equal((await guarded.chat(CHAT)).status, 200);
        assert.match(newest(service).headers.authorization ?? "", /^Bearer \S+\.\S+\.\S+$/);
        const assertion = identity.calls[0]?.form.get("assertion")?.split(".")[1] ?? "";
        const claims = JSON.parse(Buffer.from(assertion, "base64url").toString()) as Record<string, unknown>;
        assert.deepEqual([claims["iss"], claims["target_audience"]], ["second", "https://own.test"]);
      },
    );

    prove(
      fields("policies.http.requestTimeout", "policies.tcp.connectTimeout"),
      `guardrails of cloud C of the ${phase} have their own limits for the connection and for the answer`,
      async (context) => {
        const identity = await startIdentity(context);
        const service = await startVendorService(context, HOST);
        service.answer = "hang";
        const mute = await withArmor(
          context,
          { place, phase, service, identity },
          { policies: ", http: {requestTimeout: 200ms}" },
        );
        assert.equal((await mute.chat(CHAT)).status, 503);
        const deaf = await startVendorService(context, HOST, { isDeaf: true });
        const slow = await withArmor(
          context,
          { place, phase, service: deaf, identity },
          { policies: ", tcp: {connectTimeout: 200ms}" },
        );
        assert.equal((await slow.chat(CHAT)).status, 503);
      },
    );
  }
