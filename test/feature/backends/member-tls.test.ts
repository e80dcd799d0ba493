/** TLS towards one member of a backend, an LLM provider or an MCP target, against a real TLS server. */
import assert from "node:assert/strict";
import { FOREIGN, namesForeign } from "../../support/fixtures/foreign-secret.ts";
import { documents, GATEWAY, pemObject, route, startGateway, type TestGateway } from "../../support/gateway/gateway.ts";
import { MEMBER_PLACES } from "../../support/proofs/member-places.ts";
import { prove, type ProofContext } from "../../support/proofs/prove.ts";
import {
  createSelfSigned,
  startTlsUpstream,
  type Handshake,
  type TlsUpstream,
} from "../../support/servers/tls-upstream.ts";

const TRUST = "caCertificateRefs: [{name: trusted}]";

for (const place of MEMBER_PLACES) {
  const of = `(${place.kind})`;
  const field = (name: string): string => place.field(`tls.${name}`);

  /** One route per block, at /name. @param blocks of `tls` as YAML flow */
  const serve = (
    context: ProofContext,
    { port, authority }: TlsUpstream,
    blocks: Readonly<Record<string, string>>,
    ...more: readonly string[]
  ): Promise<TestGateway> => {
    const objects = Object.entries(blocks).map(([name, tls]) =>
      documents(place.backend(name, { port, block: `tls: ${tls}` }), route(name, name, `/${name}`)),
    );
    const trusted = pemObject("ConfigMap", "trusted", { "ca.crt": authority });
    return startGateway(context, documents(GATEWAY, trusted, ...objects, ...more));
  };

  const handshake = async (upstream: TlsUpstream, gateway: TestGateway, name: string): Promise<Handshake> => {
    const answer = await place.ask(`${gateway.url()}/${name}`);
    assert.equal(answer.status, 200, `${name}: ${answer.body}`);
    const last = upstream.handshakes.at(-1);
    assert.ok(last !== undefined);
    return last;
  };

  const refuses = async (gateway: TestGateway, name: string): Promise<void> => {
    assert.equal((await place.ask(`${gateway.url()}/${name}`)).status, place.refusal, name);
  };

  prove(
    ["kind", "name", "key"].map((each) => field(`caCertificateRefs[].${each}`)),
    `the authority that a member names is trusted, and by default those of the system ${of}`,
    async (context) => {
      const upstream = await startTlsUpstream(context, ["127.0.0.1"]);
      const secret = pemObject("Secret", "bundle", { "upstream.pem": upstream.authority });
      const blocks = { good: "{caCertificateRefs: [{kind: Secret, name: bundle, key: upstream.pem}]}", system: "{}" };
      const gateway = await serve(context, upstream, blocks, secret);
      await handshake(upstream, gateway, "good");
      await refuses(gateway, "system");
    },
  );

  prove(field("sni"), `a member is greeted by the name that is given for it ${of}`, async (context) => {
    const upstream = await startTlsUpstream(context, ["inner.test"]);
    const gateway = await serve(context, upstream, { right: `{sni: inner.test, ${TRUST}}`, none: `{${TRUST}}` });
    assert.equal((await handshake(upstream, gateway, "right")).serverName, "inner.test");
    await refuses(gateway, "none");
  });

  prove(
    field("verifySubjectAltNames[]"),
    `a member whose certificate has one of the names is accepted, another is not ${of}`,
    async (context) => {
      const upstream = await startTlsUpstream(context, ["a.test", "b.test"]);
      const gateway = await serve(context, upstream, {
        any: `{verifySubjectAltNames: [x.test, b.test], ${TRUST}}`,
        none: `{verifySubjectAltNames: [x.test], ${TRUST}}`,
      });
      await handshake(upstream, gateway, "any");
      await refuses(gateway, "none");
    },
  );

  prove(
    field("insecureSkipVerify"),
    `a member may go unchecked, as a whole or by its name only ${of}`,
    async (context) => {
      const upstream = await startTlsUpstream(context, ["elsewhere.test"]);
      const gateway = await serve(context, upstream, {
        all: "{insecureSkipVerify: All}",
        hostname: `{insecureSkipVerify: Hostname, ${TRUST}}`,
        checked: `{${TRUST}}`,
      });
      await handshake(upstream, gateway, "all");
      await handshake(upstream, gateway, "hostname");
      await refuses(gateway, "checked");
    },
  );

  prove(
    field("mtlsCertificateRef[].name"),
    `a member that demands a client certificate is shown it ${of}`,
    async (context) => {
      const client = createSelfSigned("gwproxy client");
      const demanding = { requestCert: true, rejectUnauthorized: true, ca: client.certificate };
      const upstream = await startTlsUpstream(context, ["127.0.0.1"], demanding);
      const secret = pemObject("Secret", "client", { "tls.crt": client.certificate, "tls.key": client.key });
      const blocks = { shown: `{mtlsCertificateRef: [{name: client}], ${TRUST}}`, missing: `{${TRUST}}` };
      const gateway = await serve(context, upstream, blocks, secret);
      assert.equal((await handshake(upstream, gateway, "shown")).client, "gwproxy client");
      await refuses(gateway, "missing");
    },
  );

  prove(
    ["group", "kind"].map((each) => field(`mtlsCertificateRef[].${each}`)),
    `a Secret does not stand in for a member's client certificate of a kind that nobody knows ${of}`,
    async (context) => {
      const upstream = await startTlsUpstream(context, ["127.0.0.1"], { requestCert: true, rejectUnauthorized: false });
      const client = createSelfSigned("gwproxy client");
      const secret = pemObject("Secret", "client", { "tls.crt": client.certificate, "tls.key": client.key });
      const blocks = { foreign: `{mtlsCertificateRef: [{name: client, ${FOREIGN}}], ${TRUST}}`, sound: `{${TRUST}}` };
      const gateway = await serve(context, upstream, blocks, secret);
      await refuses(gateway, "foreign");
      await handshake(upstream, gateway, "sound");
      namesForeign(gateway);
    },
  );

  prove(field("alpnProtocols[]"), `a member is offered the listed protocols ${of}`, async (context) => {
    const upstream = await startTlsUpstream(context, ["127.0.0.1"]);
    const gateway = await serve(context, upstream, { listed: `{alpnProtocols: [custom, http/1.1], ${TRUST}}` });
    assert.deepEqual((await handshake(upstream, gateway, "listed")).protocols, ["custom", "http/1.1"]);
  });

  prove(field("keyExchangeGroups[]"), `a member is offered the listed groups only ${of}`, async (context) => {
    const upstream = await startTlsUpstream(context, ["127.0.0.1"], { ecdhCurve: "P-384" });
    const gateway = await serve(context, upstream, {
      shared: `{keyExchangeGroups: [X25519, P-384], ${TRUST}}`,
      apart: `{keyExchangeGroups: [X25519, P-256], ${TRUST}}`,
    });
    await handshake(upstream, gateway, "shared");
    await refuses(gateway, "apart");
  });
}
