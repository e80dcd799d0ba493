import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { X509Certificate } from "node:crypto";
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test, type TestContext } from "node:test";
import { type TLSSocket, connect, createServer } from "node:tls";
import { createAuthority, createLeaf } from "../../../../src/lib/certificates/x509.ts";

const VALIDITY = { notBefore: new Date(Date.now() - 60_000), notAfter: new Date(Date.now() + 86_400_000) };

function pair(names: readonly string[]): { ca: string; certificate: string; key: string } {
  const authority = createAuthority("test authority", VALIDITY);
  return { ca: authority.certificate, ...createLeaf(authority, names, VALIDITY) };
}

async function handshake(ca: string, cert: string, key: string, servername: string): Promise<TLSSocket> {
  const server = createServer({ cert, key }, (socket) => socket.end());
  server.on("tlsClientError", () => {});
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const socket = connect({ host: "127.0.0.1", port, ca, servername });
  try {
    await once(socket, "secureConnect");
    return socket;
  } finally {
    socket.destroy();
    server.close();
  }
}

test("a TLS client that trusts the authority accepts its leaf for each of its names", async () => {
  const { ca, certificate, key } = pair(["webhook.gw.svc", "localhost"]);
  for (const name of ["webhook.gw.svc", "localhost"]) {
    const socket = await handshake(ca, certificate, key, name);
    assert.equal(socket.authorized, true);
  }
});

test("a TLS client refuses the leaf for another name", async () => {
  const { ca, certificate, key } = pair(["webhook.gw.svc"]);
  await assert.rejects(handshake(ca, certificate, key, "other.gw.svc"), { code: "ERR_TLS_CERT_ALTNAME_INVALID" });
});

test("a TLS client that trusts another authority refuses the leaf", async () => {
  const { certificate, key } = pair(["localhost"]);
  await assert.rejects(handshake(pair(["localhost"]).ca, certificate, key, "localhost"), {
    code: /SIGNATURE|VERIFY|ISSUER/,
  });
});

test("a leaf names IPv4 and IPv6 addresses", () => {
  const leaf = new X509Certificate(pair(["127.0.0.1", "::1", "2001:db8::a:1", "::ffff:10.0.0.1"]).certificate);
  for (const address of ["127.0.0.1", "::1", "2001:db8:0:0:0:0:a:1", "::ffff:a00:1"])
    assert.equal(leaf.checkIP(address), address);
  assert.equal(leaf.checkIP("127.0.0.2"), undefined);
});

/** An authority as other programs make them: a name of several parts, and perhaps an RSA key. */
function foreignAuthority(t: TestContext, algorithm: readonly string[]): { certificate: string; key: string } {
  const folder = mkdtempSync(join(tmpdir(), "gwproxy-x509-"));
  t.after(() => rmSync(folder, { recursive: true }));
  const [certificate, key] = [join(folder, "ca.crt"), join(folder, "ca.key")];
  const subject = ["-subj", "/C=DE/O=Example, Inc./OU=Gateways/CN=ca"];
  execFileSync("openssl", ["req", "-x509", "-nodes", ...algorithm, ...subject, "-keyout", key, "-out", certificate], {
    stdio: "ignore",
  });
  return { certificate: readFileSync(certificate, "utf8"), key: readFileSync(key, "utf8") };
}

const FOREIGN: readonly (readonly string[])[] = [
  ["-newkey", "rsa:2048"],
  ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-384"],
];

for (const algorithm of FOREIGN) {
  test(`a leaf of an authority that openssl made (${algorithm.join(" ")}) is accepted`, async (t) => {
    const authority = foreignAuthority(t, algorithm);
    const leaf = createLeaf(authority, ["localhost"], VALIDITY);
    const socket = await handshake(authority.certificate, leaf.certificate, leaf.key, "localhost");
    assert.equal(socket.authorized, true);
  });
}

test("an authority whose key cannot sign here is refused with its type", (t) => {
  const authority = foreignAuthority(t, ["-newkey", "ed25519"]);
  assert.throws(() => createLeaf(authority, ["localhost"], VALIDITY), /type ed25519 .*use EC or RSA/);
});

test("openssl reads both certificates and verifies the chain strictly", (t) => {
  const { ca, certificate } = pair(["localhost", "127.0.0.1"]);
  const text = (pem: string): string =>
    execFileSync("openssl", ["x509", "-noout", "-text"], { input: pem, encoding: "utf8" });
  assert.match(text(ca), /Basic Constraints: critical\s+CA:TRUE, pathlen:0/);
  assert.match(text(ca), /Key Usage: critical\s+Certificate Sign, CRL Sign/);
  const leaf = text(certificate);
  assert.match(leaf, /Version: 3/);
  assert.match(leaf, /Signature Algorithm: ecdsa-with-SHA256/);
  assert.match(leaf, /Issuer: CN\s?=\s?test authority/);
  assert.match(leaf, /Subject Alternative Name: critical\s+DNS:localhost, IP Address:127\.0\.0\.1/);
  assert.match(leaf, /Extended Key Usage:\s+TLS Web Server Authentication/);
  assert.match(leaf, /Key Usage: critical\s+Digital Signature/);
  t.diagnostic("verified with openssl");
});

test("times after 2049 are written in the long form", () => {
  const notAfter = new Date("2061-02-03T04:05:06Z");
  const { certificate } = createAuthority("far", { notBefore: VALIDITY.notBefore, notAfter });
  assert.equal(new X509Certificate(certificate).validToDate.getTime(), notAfter.getTime());
});
