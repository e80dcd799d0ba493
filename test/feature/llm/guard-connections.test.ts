/** The connections to guard services of vendors and to webhooks, at every place of a prompt guard. */
import assert from "node:assert/strict";
import { generateKeyPairSync } from "node:crypto";
import { createSecureServer } from "node:http2";
import type { AddressInfo } from "node:net";
import type { SecureServerOptions } from "node:http2";
import type { TLSSocket } from "node:tls";
import { createAuthority, createLeaf } from "../../../src/lib/certificates/x509.ts";
import { setEnvironment } from "../../support/fixtures/environment.ts";
import { FOREIGN, namesForeign } from "../../support/fixtures/foreign-secret.ts";
import { createTrustDomain, issueSvid } from "../../support/fixtures/svid.ts";
import { secret } from "../../support/gateway/backend-auth.ts";
import { EMPTY, ENVIRONMENT_KEYS, FETCHED, KEYS, ROLE } from "../../support/gateway/cloud-a.ts";
import { pemObject, staticBackend } from "../../support/gateway/gateway.ts";
import { GUARD_PLACES, startGuarded, type Guarded } from "../../support/gateway/guarded.ts";
import { serviceApart } from "../../support/gateway/models.ts";
import { prove, type ProofContext } from "../../support/proofs/prove.ts";
import { startAwsServices } from "../../support/servers/aws.ts";
import { startForwardProxy, type ForwardProxy } from "../../support/servers/forward-proxy.ts";
import { startGuardService } from "../../support/servers/guard-service.ts";
import { keepaliveOptions } from "../../support/servers/socket-options.ts";
import { createSelfSigned, validNow } from "../../support/servers/tls-upstream.ts";
import { startTokenServer } from "../../support/servers/token-endpoint.ts";
import { answerOf, presentsIdentity, startAgent } from "../../support/servers/workload-agent.ts";

/** A guard that is a service of a vendor. */
interface VendorGuard {
  readonly kind: string;
  readonly phases: readonly string[];
  readonly host: string;
  /** Members of the guard as flow YAML. */
  readonly members: string;
  /** The answer that lets every text pass. */
  readonly pass: object;
  /** A credential of a Secret, as flow YAML. */
  readonly auth: string;
  /** Paths below `policies` of references to a Secret, and the block with a reference in its place. */
  readonly references: readonly (readonly [field: string, auth: (ref: string) => string])[];
}

const BOTH = ["request", "response"];
const KEY_REFERENCE = ["auth.secretRef", (ref: string) => `auth: {secretRef: ${ref}}`] as const;
const VENDORS: readonly VendorGuard[] = [
  {
    kind: "moderation",
    phases: ["request"],
    host: "api.openai.com",
    members: "",
    pass: { results: [{ flagged: false }] },
    auth: "auth: {key: k}",
    references: [KEY_REFERENCE],
  },
  {
    kind: "guardrailsA",
    phases: BOTH,
    host: "bedrock-runtime.eu-west-1.amazonaws.com",
    members: 'identifier: g, version: "1", region: eu-west-1, ',
    pass: { action: "NONE" },
    auth: "auth: {key: k}",
    references: [KEY_REFERENCE, ["auth.cloudA.secretRef", (ref) => `auth: {cloudA: {secretRef: ${ref}}}`]],
  },
  {
    kind: "guardrailsB",
    phases: BOTH,
    host: "modelarmor.europe-west4.rep.googleapis.com",
    members: "templateId: t, projectId: p, location: europe-west4, ",
    pass: {
      sanitizationResult: { filterMatchState: "NO_MATCH_FOUND", filterResults: {}, invocationResult: "SUCCESS" },
    },
    auth: "auth: {cloudC: {secretRef: {name: robot}}}",
    references: [["auth.cloudC.secretRef", (ref) => `auth: {cloudC: {secretRef: ${ref}}}`]],
  },
];

/** What the service sees of one call. */
interface SeenCall {
  readonly serverName: string | false;
  readonly client: string | undefined;
  readonly version: string;
  readonly url: string;
  readonly headers: Readonly<Record<string, unknown>>;
}

interface Vendor {
  readonly seen: readonly SeenCall[];
  /** Protocols that each connection offered. */
  readonly offered: readonly (readonly string[])[];
  readonly proxy: ForwardProxy;
  readonly authority: string;
}

/** @param names of its certificate @param options which override the certificate */
async function startVendor(
  context: ProofContext,
  { host, pass }: VendorGuard,
  { names = [host], options = {} }: { readonly names?: readonly string[]; readonly options?: SecureServerOptions } = {},
): Promise<Vendor> {
  const authority = createAuthority("vendor authority", validNow());
  const { certificate, key } = createLeaf(authority, names, validNow());
  const [seen, offered]: [SeenCall[], string[][]] = [[], []];
  const server = createSecureServer({
    cert: certificate,
    key,
    allowHTTP1: true,
    ALPNCallback: ({ protocols }) => {
      offered.push([...protocols]);
      return protocols.find((name) => name === "h2" || name === "http/1.1");
    },
    ...options,
  });
  const open = new Set<{ destroy(): void }>();
  server.on("secureConnection", (socket) => open.add(socket));
  server.on("request", (request, response) => {
    const { headers, httpVersion: version, url } = request;
    // HTTP/2 shows a socket of its own in front of the one of TLS.
    const socket = (request.stream?.session?.socket ?? request.socket) as TLSSocket;
    const client = socket.getPeerCertificate();
    const name = client.subjectaltname ?? client.subject?.CN?.toString();
    seen.push({ serverName: socket.servername ?? false, client: name, version, url, headers });
    request.resume();
    request.on("end", () => response.end(JSON.stringify(pass)));
  });
  await new Promise<void>((resolve) => void server.listen(0, "127.0.0.1", resolve));
  context.after(() => {
    for (const socket of open) socket.destroy();
    server.close();
  });
  const { port } = server.address() as AddressInfo; // a TCP server has such an address
  const proxy = await startForwardProxy(context, { places: { [`${host}:443`]: `127.0.0.1:${port}` } });
  return { seen, offered, proxy, authority: authority.certificate };
}

const RSA = generateKeyPairSync("rsa", { modulusLength: 2048 })
  .privateKey.export({ type: "pkcs8", format: "pem" })
  .toString();

interface Setup {
  readonly place: (typeof GUARD_PLACES)[number];
  readonly guard: VendorGuard;
  readonly phase: string;
  readonly vendor: Vendor;
}

/** @param blocks members of the guard from `policies` on, one for each guard of the list */
async function startGuards(
  context: ProofContext,
  { place, guard: { kind, members }, phase, vendor }: Setup,
  blocks: readonly string[],
  { objects = [], spiffeEndpoint }: { readonly objects?: readonly string[]; readonly spiffeEndpoint?: string } = {},
): Promise<Guarded> {
  const tokens = await startTokenServer(context);
  const robot = { type: "service_account", client_email: "r", private_key: RSA, private_key_id: "1" };
  const list = blocks.map((block) => `{${kind}: {${members}${block}}}`);
  return startGuarded(context, `{${phase}: [${list.join()}]}`, {
    place,
    ...(spiffeEndpoint === undefined ? {} : { spiffeEndpoint }),
    objects: [
      pemObject("ConfigMap", "trusted", { "ca.crt": vendor.authority }),
      pemObject("Secret", "bundle", { "vendor.pem": vendor.authority }),
      secret("robot", { "credentials.json": JSON.stringify({ ...robot, token_uri: `${tokens.url}/token` }) }),
      ...objects,
    ],
  });
}

const TRUST = "caCertificateRefs: [{name: trusted}]";
const TUNNEL = ({ proxy }: Vendor): string => `tunnel: {url: "http://127.0.0.1:${proxy.port}"}`;

for (const place of GUARD_PLACES)
  for (const guard of VENDORS)
    for (const phase of guard.phases) {
      const { kind, host, auth } = guard;
      const fields = (...names: readonly string[]): string[] =>
        names.map((name) => place.field(`${phase}[].${kind}.policies.${name}`));
      const setup = async (context: ProofContext, options?: Parameters<typeof startVendor>[2]): Promise<Setup> => ({
        place,
        guard,
        phase,
        vendor: await startVendor(context, guard, options),
      });

      prove(
        fields(
          ...["sni", "caCertificateRefs[].kind", "caCertificateRefs[].key", "verifySubjectAltNames[]"].map(
            (name) => `tls.${name}`,
          ),
          ...["insecureSkipVerify", "alpnProtocols[]", "keyExchangeGroups[]", "mtlsCertificateRef[].name"].map(
            (name) => `tls.${name}`,
          ),
          "http.version",
        ),
        `the service of ${kind} is greeted and checked as the TLS settings of the ${phase} say`,
        async (context) => {
          const client = createSelfSigned("gwproxy client");
          const options = { requestCert: true, rejectUnauthorized: false, ecdhCurve: "P-384" };
          const scene = await setup(context, { names: ["inner.test"], options });
          const { vendor } = scene;
          const block = (tls: string, more = ""): string =>
            `policies: {${auth}, ${TUNNEL(vendor)}, tls: {${tls}}${more}}`;
          const named = "sni: inner.test, caCertificateRefs: [{kind: Secret, name: bundle, key: vendor.pem}]";
          const guarded = await startGuards(
            context,
            scene,
            [
              block(`${named}, alpnProtocols: [custom, http/1.1]`),
              block(`verifySubjectAltNames: [x.test, inner.test], ${TRUST}`),
              block("insecureSkipVerify: All"),
              block(`${named}, keyExchangeGroups: [X25519, P-384]`),
              block(`${named}, mtlsCertificateRef: [{name: client}]`),
              block(named, ", http: {version: HTTP1}"),
              `failureMode: FailOpen, ${block(`${named}, keyExchangeGroups: [X25519, P-256]`)}`,
            ],
            { objects: [pemObject("Secret", "client", { "tls.crt": client.certificate, "tls.key": client.key })] },
          );
          const { status, body } = await guarded.ask("hi");
          assert.equal(status, 200, body);
          assert.deepEqual(
            vendor.seen.map(({ serverName, client: shown, version }) => [serverName, shown, version]),
            [
              ["inner.test", undefined, "1.1"],
              [host, undefined, "2.0"],
              [host, undefined, "2.0"],
              ["inner.test", undefined, "2.0"],
              ["inner.test", "gwproxy client", "2.0"],
              ["inner.test", undefined, "1.1"],
            ],
          );
          assert.deepEqual(vendor.offered[0], ["custom", "http/1.1"]);
        },
      );

      const references = [
        ...guard.references,
        ["tls.mtlsCertificateRef[]", (ref: string) => `${auth}, tls: {mtlsCertificateRef: [${ref}]}`] as const,
      ];
      for (const [field, blockOf] of references)
        prove(
          fields(`${field}.group`, `${field}.kind`),
          `${kind} of the ${phase} closes where ${field} names a kind that is not known`,
          async (context) => {
            const scene = await setup(context);
            const guarded = await startGuards(context, scene, [
              `policies: {${TUNNEL(scene.vendor)}, ${blockOf(`{name: robot, ${FOREIGN}}`)}}`,
            ]);
            assert.notEqual((await guarded.ask("hi")).status, 200);
            assert.equal(scene.vendor.seen.length, 0);
            namesForeign(guarded.gateway);
          },
        );

      prove(
        fields("tls.certificateSource", ...["time", "interval", "retries"].map((name) => `tcp.keepalive.${name}`)),
        `the service of ${kind} of the ${phase} sees the identity of the workload, on connections that are probed`,
        async (context) => {
          const domain = createTrustDomain("example.org");
          const own = issueSvid(domain, "/ns/edge/sa/gateway");
          const web = issueSvid(domain, "/ns/guards/sa/web");
          const agent = await startAgent(context, answerOf(own, domain));
          const scene = await setup(context, {
            options: {
              cert: web.certificate,
              key: web.privateKey,
              ca: domain.certificate,
              requestCert: true,
              rejectUnauthorized: true,
            },
          });
          const { vendor } = scene;
          const guarded = await startGuards(
            context,
            scene,
            [
              `policies: {${auth}, ${TUNNEL(vendor)}, tls: {certificateSource: SPIFFE}, tcp: {keepalive: {time: 40s, interval: 6s, retries: 2}}}`,
            ],
            { spiffeEndpoint: agent.endpoint },
          );
          const { proxy } = guarded.gateway;
          assert.ok((await proxy.state()).workloadIdentity, "no request has to wait for an identity");
          await presentsIdentity(proxy, own);
          assert.equal((await guarded.ask("hi")).status, 200);
          assert.equal(vendor.seen[0]?.client, `URI:${own.id}`);
          assert.deepEqual(await keepaliveOptions(vendor.proxy.port), { seconds: 40, intervalSeconds: 6, probes: 2 });
        },
      );

      prove(
        fields(...["group", "kind", "name", "namespace", "port"].map((name) => `tunnel.backendRef.${name}`)),
        `the service of ${kind} of the ${phase} is reached through the proxy that the guard names`,
        async (context) => {
          const scene = await setup(context);
          const { proxy } = scene.vendor;
          const through = (ref: string): string => `policies: {${auth}, tls: {${TRUST}}, tunnel: {backendRef: ${ref}}}`;
          const guarded = await startGuards(
            context,
            scene,
            [
              through("{group: gwproxy.dev, kind: GwBackend, name: proxy}"),
              through("{name: proxies, namespace: egress, port: 80}"),
            ],
            { objects: [staticBackend("proxy", proxy.port), serviceApart("egress", "proxies", proxy.port)] },
          );
          assert.equal((await guarded.ask("hi")).status, 200);
          assert.equal(scene.vendor.seen.length, 2);
          assert.deepEqual(new Set(proxy.asked), new Set([`CONNECT ${host}:443`]));
        },
      );

      if (kind === "guardrailsB") continue;
      prove(
        fields("auth.location.cookie.name", "auth.location.queryParameter.name"),
        `the credential of ${kind} of the ${phase} is in the cookie or the query where the guard says so`,
        async (context) => {
          const scene = await setup(context);
          const at = (location: string): string =>
            `policies: {auth: {key: of-the-guard, location: ${location}}, ${TUNNEL(scene.vendor)}, tls: {${TRUST}}}`;
          const guarded = await startGuards(context, scene, [
            at("{cookie: {name: c}}"),
            at("{queryParameter: {name: q}}"),
          ]);
          assert.equal((await guarded.ask("hi")).status, 200);
          const [cookie, query] = scene.vendor.seen;
          assert.equal(cookie?.headers["cookie"], "c=of-the-guard");
          assert.match(query?.url ?? "", /\?q=of-the-guard$/);
        },
      );

      if (kind !== "guardrailsA") continue;
      prove(
        fields(
          ...["roleArn", "sessionName", "sessionNameExpression"].map((name) => `auth.cloudA.assumeRole.${name}`),
          ...["key", "value", "expression"].map((name) => `auth.cloudA.assumeRole.tags[].${name}`),
        ),
        `requests of ${kind} of the ${phase} are signed with the keys of a role`,
        async (context) => {
          const sts = await startAwsServices(context, FETCHED, { ...KEYS, region: "eu-west-1", service: "sts" });
          setEnvironment(context, { ...EMPTY, ...ENVIRONMENT_KEYS, AWS_ENDPOINT_URL_STS: sts.url });
          const scene = await setup(context);
          const role = (members: string): string =>
            `policies: {auth: {cloudA: {region: eu-west-1, assumeRole: {roleArn: "${ROLE}", ${members}}}}, ${TUNNEL(scene.vendor)}, tls: {${TRUST}}}`;
          const who = `'request.headers["x-who"]'`;
          const guarded = await startGuards(context, scene, [
            role("sessionName: night, tags: [{key: team, value: red}]"),
            role(`sessionNameExpression: ${who}, tags: [{key: who, expression: ${who}}]`),
          ]);
          assert.equal((await guarded.ask("hi", { "x-who": "ann" })).status, 200);
          assert.deepEqual(
            sts.parameters.map((asked) =>
              ["RoleArn", "RoleSessionName", "Tags.member.1.Key", "Tags.member.1.Value"].map((name) => asked.get(name)),
            ),
            [
              [ROLE, "night", "team", "red"],
              [ROLE, "ann", "who", "ann"],
            ],
          );
          for (const { headers } of scene.vendor.seen)
            assert.match(String(headers["authorization"]), new RegExp(`Credential=${FETCHED.accessKeyId}/`));
        },
      );
    }

for (const place of GUARD_PLACES)
  for (const phase of BOTH)
    prove(
      ["namespace", "port"].map((name) => place.field(`${phase}[].webhook.backendRef.${name}`)),
      `the webhook of the ${phase} may be the port of a Service in another namespace`,
      async (context) => {
        const hook = await startGuardService(context);
        const ref = "{name: hook, namespace: apart, port: 80}";
        const guarded = await startGuarded(context, `{${phase}: [{webhook: {backendRef: ${ref}}}]}`, {
          place,
          objects: [serviceApart("apart", "hook", hook.port)],
        });
        assert.equal((await guarded.ask("hi")).status, 200);
        assert.equal(hook.received.length, 1);
      },
    );
