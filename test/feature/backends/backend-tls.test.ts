/** TLS towards upstreams, set inline on a GwBackend and by a GwPolicy, against a real TLS server. */
import assert from "node:assert/strict";
import { getCACertificates, setDefaultCACertificates } from "node:tls";
import { createAuthority } from "../../../src/lib/certificates/x509.ts";
import { FOREIGN, namesForeign } from "../../support/fixtures/foreign-secret.ts";
import {
  documents,
  GATEWAY,
  pemObject,
  route,
  routePolicy,
  startGateway,
  staticBackend,
  type TestGateway,
} from "../../support/gateway/gateway.ts";
import { rawClient } from "../../support/gateway/data-plane.ts";
import { call } from "../../support/clients/http.ts";
import { prove, type ProofContext } from "../../support/proofs/prove.ts";
import {
  createSelfSigned,
  startTlsUpstream,
  validNow,
  type Handshake,
  type TlsUpstream,
} from "../../support/servers/tls-upstream.ts";

/** The two places where the same block can stand. */
interface Place {
  readonly prefix: string;
  /** A backend with the block, and a policy if that is where the block stands. @param tls YAML flow */
  objects(name: string, port: number, tls: string): string;
}

const PLACES: readonly Place[] = [
  {
    prefix: "GwBackend spec.policies.tls",
    objects: (name, port, tls) => `${staticBackend(name, port).trimEnd()}\n  policies: {tls: ${tls}}\n`,
  },
  {
    prefix: "GwPolicy spec.backend.tls",
    objects: (name, port, tls) =>
      documents(staticBackend(name, port), routePolicy(`tls-${name}`, name, `  backend: {tls: ${tls}}`)),
  },
];

/** @returns starts a gateway with one route per block, at /name, and more objects */
function serve(context: ProofContext, place: Place, upstream: TlsUpstream) {
  return (blocks: Readonly<Record<string, string>>, ...more: readonly string[]): Promise<TestGateway> => {
    const objects = Object.entries(blocks).map(([name, tls]) =>
      documents(place.objects(name, upstream.port, tls), route(name, name, `/${name}`)),
    );
    const trusted = pemObject("ConfigMap", "trusted", { "ca.crt": upstream.authority });
    return startGateway(context, documents(GATEWAY, trusted, ...objects, ...more));
  };
}

const TRUST = "caCertificateRefs: [{name: trusted}]";

async function handshake(gateway: TestGateway, name: string): Promise<Handshake> {
  const answer = await call(`${gateway.url()}/${name}`);
  assert.equal(answer.status, 200, `${name}: ${answer.body}`);
  return JSON.parse(answer.body) as Handshake;
}

async function refuses(gateway: TestGateway, name: string): Promise<void> {
  assert.equal((await call(`${gateway.url()}/${name}`)).status, 503, name);
}

for (const place of PLACES) {
  const on = `(${place.prefix.split(" ")[0]})`;
  const field = (name: string) => `${place.prefix}.${name}`;

  prove(
    ["kind", "name", "key"].map((each) => field(`caCertificateRefs[].${each}`)),
    `the authority in the entry that the block names is trusted, another one or none is not ${on}`,
    async (context) => {
      const upstream = await startTlsUpstream(context, ["127.0.0.1"]);
      const other = createAuthority("another authority", validNow()).certificate;
      const gateway = await serve(
        context,
        place,
        upstream,
      )(
        {
          good: "{caCertificateRefs: [{kind: Secret, name: bundle, key: upstream.pem}]}",
          wrong: "{caCertificateRefs: [{kind: Secret, name: bundle, key: other.pem}]}",
          map: `{${TRUST}}`,
          system: "{}",
        },
        pemObject("Secret", "bundle", { "upstream.pem": upstream.authority, "other.pem": other }),
      );
      await handshake(gateway, "good");
      await handshake(gateway, "map");
      await refuses(gateway, "wrong");
      await refuses(gateway, "system");
    },
  );

  prove(field("sni"), `the name is sent and checked in place of the host's ${on}`, async (context) => {
    const upstream = await startTlsUpstream(context, ["inner.test"]);
    const gateway = await serve(
      context,
      place,
      upstream,
    )({
      right: `{sni: inner.test, ${TRUST}}`,
      wrong: `{sni: outer.test, ${TRUST}}`,
      none: `{${TRUST}}`,
    });
    assert.equal((await handshake(gateway, "right")).serverName, "inner.test");
    await refuses(gateway, "wrong");
    await refuses(gateway, "none");
  });

  prove(
    field("verifySubjectAltNames[]"),
    `a certificate with any of the names is accepted, one with none is not ${on}`,
    async (context) => {
      const upstream = await startTlsUpstream(context, ["a.test", "b.test"]);
      const gateway = await serve(
        context,
        place,
        upstream,
      )({
        any: `{verifySubjectAltNames: [x.test, b.test], ${TRUST}}`,
        none: `{verifySubjectAltNames: [x.test, y.test], ${TRUST}}`,
      });
      await handshake(gateway, "any");
      await refuses(gateway, "none");
    },
  );

  prove(field("verifySubjectAltNames[]"), `a name may be a URI, which has to be equal ${on}`, async (context) => {
    const own = createSelfSigned("workload", "URI:spiffe://test/ns/a/sa/web");
    const upstream = await startTlsUpstream(context, [], { cert: own.certificate, key: own.key });
    const gateway = await serve(context, place, { ...upstream, authority: own.certificate })({
      equal: `{verifySubjectAltNames: ["spiffe://test/ns/a/sa/web"], ${TRUST}}`,
      other: `{verifySubjectAltNames: ["spiffe://test/ns/a/sa/we"], ${TRUST}}`,
    });
    await handshake(gateway, "equal");
    await refuses(gateway, "other");
  });

  prove(field("insecureSkipVerify"), `Hostname checks the chain alone, All checks nothing ${on}`, async (context) => {
    const upstream = await startTlsUpstream(context, ["elsewhere.test"]);
    const gateway = await serve(
      context,
      place,
      upstream,
    )({
      hostname: `{insecureSkipVerify: Hostname, ${TRUST}}`,
      unknown: "{insecureSkipVerify: Hostname}",
      all: "{insecureSkipVerify: All}",
      checked: `{${TRUST}}`,
    });
    await handshake(gateway, "hostname");
    await handshake(gateway, "all");
    await refuses(gateway, "unknown");
    await refuses(gateway, "checked");
  });

  prove(
    field("mtlsCertificateRef[].name"),
    `the client certificate is shown to an upstream that demands one ${on}`,
    async (context) => {
      const client = createSelfSigned("gwproxy client");
      const upstream = await startTlsUpstream(context, ["127.0.0.1"], {
        requestCert: true,
        rejectUnauthorized: true,
        ca: client.certificate,
      });
      const secret = pemObject("Secret", "client", {
        "tls.crt": client.certificate,
        "tls.key": client.key,
        "ca.cert": upstream.authority,
      });
      const blocks = {
        shown: `{mtlsCertificateRef: [{name: client}], ${TRUST}}`,
        own: "{mtlsCertificateRef: [{name: client}]}",
        missing: `{${TRUST}}`,
      };
      const gateway = await serve(context, place, upstream)(blocks, secret);
      assert.equal((await handshake(gateway, "shown")).client, "gwproxy client");
      assert.equal((await handshake(gateway, "own")).client, "gwproxy client");
      await refuses(gateway, "missing");
    },
  );

  prove(
    ["group", "kind"].map((each) => field(`mtlsCertificateRef[].${each}`)),
    `a Secret does not stand in for a client certificate of a kind that nobody knows ${on}`,
    async (context) => {
      const upstream = await startTlsUpstream(context, ["127.0.0.1"], { requestCert: true, rejectUnauthorized: false });
      const client = createSelfSigned("gwproxy client");
      const secret = pemObject("Secret", "client", { "tls.crt": client.certificate, "tls.key": client.key });
      const block = { foreign: `{mtlsCertificateRef: [{name: client, ${FOREIGN}}], ${TRUST}}`, sound: `{${TRUST}}` };
      const gateway = await serve(context, place, upstream)(block, secret);
      const closed = place.prefix.startsWith("GwBackend") ? 500 : 503;
      assert.equal((await call(`${gateway.url()}/foreign`)).status, closed);
      await handshake(gateway, "sound");
      namesForeign(gateway);
    },
  );

  prove(
    field("certificateSource"),
    `what comes from a workload API is not replaced by anything else where there is none ${on}`,
    async (context) => {
      const upstream = await startTlsUpstream(context, ["127.0.0.1"]);
      const usual = getCACertificates("default");
      context.after(() => setDefaultCACertificates(usual));
      setDefaultCACertificates([...usual, upstream.authority]);
      const blocks = { inline: "{certificateSource: Inline}", workload: "{certificateSource: SPIFFE}" };
      const gateway = await serve(context, place, upstream)(blocks);
      await handshake(gateway, "inline");
      await refuses(gateway, "workload");
    },
  );

  prove(field("alpnProtocols[]"), `the listed protocols are offered, in their order ${on}`, async (context) => {
    const upstream = await startTlsUpstream(context, ["127.0.0.1"]);
    const gateway = await serve(context, place, upstream)({ listed: `{alpnProtocols: [custom, http/1.1], ${TRUST}}` });
    assert.deepEqual((await handshake(gateway, "listed")).protocols, ["custom", "http/1.1"]);
  });

  prove(field("keyExchangeGroups[]"), `only the listed groups are offered ${on}`, async (context) => {
    const upstream = await startTlsUpstream(context, ["127.0.0.1"], { ecdhCurve: "P-384" });
    const gateway = await serve(
      context,
      place,
      upstream,
    )({
      shared: `{keyExchangeGroups: [X25519, P-384], ${TRUST}}`,
      apart: `{keyExchangeGroups: [X25519, P-256], ${TRUST}}`,
    });
    await handshake(gateway, "shared");
    await refuses(gateway, "apart");
  });
}

prove([], "a client certificate and a key that do not belong together never reach the upstream", async (context) => {
  const upstream = await startTlsUpstream(context, ["127.0.0.1"], { requestCert: true, rejectUnauthorized: false });
  const [one, two] = [createSelfSigned("one"), createSelfSigned("two")];
  const secret = pemObject("Secret", "client", { "tls.crt": one.certificate, "tls.key": two.key });
  const block = { mixed: `{mtlsCertificateRef: [{name: client}], ${TRUST}}`, sound: `{${TRUST}}` };
  for (const place of PLACES) {
    const gateway = await serve(context, place, upstream)(block, secret);
    assert.equal((await call(`${gateway.url()}/mixed`)).status, 500, place.prefix);
    await handshake(gateway, "sound");
  }
});

prove([], "a block whose authority is missing answers 500 on a GwBackend and 503 from a GwPolicy", async (context) => {
  const upstream = await startTlsUpstream(context, ["127.0.0.1"]);
  const block = { lost: "{caCertificateRefs: [{name: nowhere}]}" };
  const statuses = await Promise.all(
    PLACES.map(async (place) => (await call(`${(await serve(context, place, upstream)(block)).url()}/lost`)).status),
  );
  assert.deepEqual(statuses, [500, 503]);
});

prove(
  [],
  "what is offered narrows to the version that is fixed, and a list of the user's stays as it is",
  async (context) => {
    const upstream = await startTlsUpstream(context, ["127.0.0.1"]);
    const trusted = pemObject("ConfigMap", "trusted", { "ca.crt": upstream.authority });
    const backend = (name: string, alpn: string, http: string): string => {
      const block = `  policies: {tls: {${alpn}${TRUST}}${http}}\n`;
      return documents(`${staticBackend(name, upstream.port).trimEnd()}\n${block}`, route(name, name, `/${name}`));
    };
    const gateway = await startGateway(
      context,
      documents(
        GATEWAY,
        trusted,
        backend("open", "", ""),
        backend("fixed", "", ", http: {version: HTTP1}"),
        backend("listed", "alpnProtocols: [http/1.1, custom], ", ", http: {version: HTTP1}"),
        backend("both", "alpnProtocols: [h2, http/1.1], ", ""),
      ),
    );
    // In this order: connections that speak HTTP/1.1 are shared, however they came to it.
    assert.deepEqual((await handshake(gateway, "fixed")).protocols, ["http/1.1"]);
    assert.deepEqual((await handshake(gateway, "open")).protocols, ["h2", "http/1.1"]);
    assert.deepEqual((await handshake(gateway, "listed")).protocols, ["http/1.1", "custom"]);
    assert.deepEqual((await handshake(gateway, "both")).protocols, ["h2", "http/1.1"]);
  },
);

prove([], "a request to leave HTTP never offers a version that has no way to", async (context) => {
  const upstream = await startTlsUpstream(context, ["127.0.0.1"]);
  const trusted = pemObject("ConfigMap", "trusted", { "ca.crt": upstream.authority });
  const block = `  policies: {tls: {alpnProtocols: [h2, http/1.1], ${TRUST}}}\n`;
  const web = `${staticBackend("web", upstream.port).trimEnd()}\n${block}`;
  const gateway = await startGateway(context, documents(GATEWAY, trusted, web, route("web", "web")));
  const head = "GET / HTTP/1.1\r\nhost: a.test\r\nconnection: upgrade\r\nupgrade: custom\r\n\r\n";
  const client = rawClient(Number(new URL(gateway.url()).port), head);
  context.after(() => void client.socket.destroy());
  await client.until(/"protocols":\["http\/1.1"\]/);
});
