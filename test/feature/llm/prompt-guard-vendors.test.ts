/** Prompt guards that ask the service of a vendor at its own host, through real sockets. */
import assert from "node:assert/strict";
import { gatewayPolicy } from "../../support/gateway/gateway.ts";
import { GUARD_PLACES, lastMessages, said, startGuarded, type Guarded } from "../../support/gateway/guarded.ts";
import { findSignatureFault } from "../../support/servers/llm/aws-signature.ts";
import { prove, type ProofContext } from "../../support/proofs/prove.ts";
import {
  BAD_VENDOR_ANSWERS,
  newest,
  startVendorService,
  type GuardService,
  type VendorService,
} from "../../support/servers/guard-service.ts";

type Place = (typeof GUARD_PLACES)[number];

const fields = (place: Place, ...names: readonly string[]): string[] => names.map((name) => place.field(name));

const CHAT = {
  messages: [
    { role: "system", content: "be kind" },
    {
      role: "user",
      content: [
        { type: "text", text: "one" },
        { type: "text", text: "two" },
      ],
    },
  ],
};

/** Settings of the connection to a vendor that withVendor sets. */
const POLICIES = [
  "auth.key",
  "auth.location.header.name",
  "auth.location.header.prefix",
  "tls.caCertificateRefs[].name",
  "tunnel.url",
];

for (const place of GUARD_PLACES) {
  prove(
    fields(
      place,
      ...["model", "action", "failureMode"].map((name) => `request[].moderation.${name}`),
      ...POLICIES.map((name) => `request[].moderation.policies.${name}`),
    ),
    "the moderation service is asked at its own host, and a flagged prompt is rejected",
    async (context) => {
      const service = await startVendorService(context, "api.openai.com");
      const moderation = (members: string) =>
        withVendor(context, { place, service, guard: `moderation: {model: strict, ${members}` });
      const rejecting = await moderation("failureMode: FailOpen");
      service.answer = { body: { results: [{ flagged: false }, { flagged: true }] } };
      assert.equal((await rejecting.chat(CHAT)).status, 403);
      const { path, headers, body } = newest(service);
      assert.deepEqual([path, headers["x-key"]], ["/v1/moderations", "Token of-the-guard"]);
      assert.deepEqual(body, { model: "strict", input: ["be kind", "one two"] });
      assert.deepEqual(service.tunnel.asked, ["CONNECT api.openai.com:443"]);
      const audited = await moderation("action: Audit");
      assert.equal((await audited.chat(CHAT)).status, 200);
      service.answer = { body: { results: [{ flagged: false }] } };
      assert.equal((await rejecting.chat(CHAT)).status, 200);
      const closed = await moderation("failureMode: FailClosed");
      for (const answer of BAD_VENDOR_ANSWERS) {
        service.answer = answer;
        assert.equal((await rejecting.chat(CHAT)).status, 200, JSON.stringify(answer));
        assert.equal((await closed.chat(CHAT)).status, 503, JSON.stringify(answer));
      }
    },
  );

  for (const phase of ["request", "response"])
    prove(
      fields(
        place,
        ...["identifier", "version", "region", "action", "failureMode"].map((name) => `${phase}[].guardrailsA.${name}`),
        ...POLICIES.map((name) => `${phase}[].guardrailsA.policies.${name}`),
      ),
      `guardrails of cloud A see each text of the ${phase}, and mask or reject`,
      async (context) => {
        const service = await startVendorService(context, "bedrock-runtime.eu-west-1.amazonaws.com");
        const guardrails = (members: string) =>
          withVendor(context, {
            place,
            service,
            phase,
            guard: `guardrailsA: {identifier: g/1, version: "7", region: eu-west-1, ${members}`,
          });
        const guarded = await guardrails("failureMode: FailOpen");
        const texts = phase === "request" ? ["be kind", "one two"] : ["a", "b"];
        service.answer = { body: { action: "NONE", outputs: [], assessments: [] } };
        assert.equal((await guarded.chat(CHAT)).status, 200);
        const { path, headers, body } = newest(service);
        assert.deepEqual([path, headers["x-key"]], ["/guardrail/g%2F1/version/7/apply", "Token of-the-guard"]);
        const source = phase === "request" ? "INPUT" : "OUTPUT";
        assert.deepEqual(body, { source, content: texts.map((text) => ({ text: { text } })) });
        assert.deepEqual(service.tunnel.asked, ["CONNECT bedrock-runtime.eu-west-1.amazonaws.com:443"]);

        const found = (action: string) => [{ sensitiveInformationPolicy: { piiEntities: [{ action, match: "x" }] } }];
        const outputs = [{ text: "be kind" }, { text: "***" }];
        service.answer = { body: { action: "GUARDRAIL_INTERVENED", outputs, assessments: found("ANONYMIZED") } };
        const masked = await guarded.chat(CHAT);
        assert.ok(JSON.stringify([lastMessages(guarded), masked.body]).includes("***"));
        const audited = await guardrails("action: Audit");
        const audit = await audited.chat(CHAT);
        assert.ok(!JSON.stringify([lastMessages(audited), audit.body]).includes("***"));
        for (const [given, assessments] of [
          [outputs, [...found("ANONYMIZED"), ...found("BLOCKED")]],
          [outputs.slice(1), found("ANONYMIZED")],
          [outputs, []],
        ]) {
          service.answer = { body: { action: "GUARDRAIL_INTERVENED", outputs: given, assessments } };
          assert.equal((await guarded.chat(CHAT)).status, 403);
        }
        const closed = await guardrails("failureMode: FailClosed");
        for (const answer of BAD_VENDOR_ANSWERS) {
          service.answer = answer;
          assert.equal((await guarded.chat(CHAT)).status, 200, JSON.stringify(answer));
          assert.equal((await closed.chat(CHAT)).status, 503, JSON.stringify(answer));
        }
      },
    );
}

interface Vendor {
  readonly place: Place;
  readonly service: VendorService;
  /** The guard as flow YAML, without the braces at its end. */
  readonly guard: string;
  readonly phase?: string;
}

function withVendor(context: ProofContext, { place, service, guard, phase = "request" }: Vendor): Promise<Guarded> {
  const auth = 'auth: {key: of-the-guard, location: {header: {name: X-Key, prefix: "Token "}}}';
  const policies = `{${service.policies}, ${auth}}`;
  const objects = [service.object];
  return startGuarded(context, `{${phase}: [{${guard}, policies: ${policies}}}]}`, {
    place,
    objects,
    answer: said("a", "b"),
  });
}

interface VendorGuard {
  readonly kind: string;
  readonly phase: string;
  readonly host: string;
  /** Members of the guard as flow YAML. */
  readonly members: string;
  readonly pass: GuardService["answer"];
}

const AWS = "bedrock-runtime.eu-west-1.amazonaws.com";
const MODERATION: VendorGuard = {
  kind: "moderation",
  phase: "request",
  host: "api.openai.com",
  members: "failureMode: FailClosed",
  pass: { body: { results: [{ flagged: false }] } },
};
const GUARDRAILS: readonly VendorGuard[] = ["request", "response"].map((phase) => ({
  kind: "guardrailsA",
  phase,
  host: AWS,
  members: 'identifier: g, version: "1", region: eu-west-1',
  pass: { body: { action: "NONE" } },
}));

/** Longer than the limits of a guard, and far shorter than its default. */
const LIMIT = gatewayPolicy("limit", "  traffic: {timeouts: {request: 3s}}");
const KEYS = `
apiVersion: v1
kind: Secret
metadata: {name: keys}
stringData: {Authorization: from-a-secret, other: of-another-entry, accessKey: AKID, secretKey: hidden}
`;

/** @param policies of the guard, besides those with which the service is reached */
function withPolicies(
  context: ProofContext,
  place: Place,
  { kind, phase, members }: VendorGuard,
  { service, policies }: { readonly service: VendorService; readonly policies: string },
): Promise<Guarded> {
  const guard = `{${phase}: [{${kind}: {${members}, policies: {${service.policies}${policies}}}}]}`;
  return startGuarded(context, guard, { place, objects: [service.object, LIMIT, KEYS] });
}

for (const place of GUARD_PLACES)
  for (const guard of [MODERATION, ...GUARDRAILS]) {
    const { kind, phase, host, pass } = guard;
    const field = (name: string): string => place.field(`${phase}[].${kind}.policies.${name}`);

    prove(
      [field("http.requestTimeout"), field("tcp.connectTimeout")],
      `${kind} of the ${phase} has its own limits for the connection and for the answer`,
      async (context) => {
        const service = await startVendorService(context, host);
        service.answer = "hang";
        const auth = ", auth: {key: k}";
        const policies = `, http: {requestTimeout: 200ms}${auth}`;
        const mute = await withPolicies(context, place, guard, { service, policies });
        assert.equal((await mute.ask("hi")).status, 503);
        const deaf = await startVendorService(context, host, { isDeaf: true });
        const slow = await withPolicies(context, place, guard, {
          service: deaf,
          policies: `, tcp: {connectTimeout: 200ms}${auth}`,
        });
        assert.equal((await slow.ask("hi")).status, 503);
      },
    );

    prove(
      ["name", "key"].map((name) => field(`auth.secretRef.${name}`)),
      `${kind} of the ${phase} shows the credential of a Secret`,
      async (context) => {
        const service = await startVendorService(context, host);
        service.answer = pass;
        const policies = ", auth: {secretRef: {name: keys, key: other}}";
        const guarded = await withPolicies(context, place, guard, { service, policies });
        assert.equal((await guarded.ask("hi")).status, 200);
        assert.equal(newest(service).headers.authorization, "Bearer of-another-entry");
      },
    );

    if (kind !== "guardrailsA") continue;
    prove(
      ["secretRef.name", "region", "serviceName"].map((name) => field(`auth.cloudA.${name}`)),
      `${kind} of the ${phase} signs its requests with the keys of a Secret`,
      async (context) => {
        const service = await startVendorService(context, host);
        service.answer = pass;
        const policies = ", auth: {cloudA: {secretRef: {name: keys}, region: us-east-1, serviceName: other}}";
        const guarded = await withPolicies(context, place, guard, { service, policies });
        assert.equal((await guarded.ask("hi")).status, 200);
        const { method, path: url, rawHeaders, text } = newest(service);
        const expected = { accessKeyId: "AKID", secretAccessKey: "hidden", region: "us-east-1", service: "other" };
        const fault = findSignatureFault({ method, url, rawHeaders, body: Buffer.from(text) }, expected);
        assert.equal(fault, undefined);
      },
    );
  }
