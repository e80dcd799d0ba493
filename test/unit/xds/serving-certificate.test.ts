/** The certificate of the discovery server: what is made, what is taken from the Secret, and when it changes. */
import assert from "node:assert/strict";
import { X509Certificate } from "node:crypto";
import { test } from "node:test";
import { createAuthority, createLeaf } from "../../../src/lib/certificates/x509.ts";
import {
  type AuthorityStore,
  type ServingCertificate,
  ServingCertificates,
  type StoredEntries,
} from "../../../src/xds/server/serving-certificate.ts";
import { recordingLog } from "../../support/gateway/silent-log.ts";
import { testClock, type TestClock } from "../../support/gateway/test-clock.ts";

const HOUR_MS = 3_600_000;
const NAMES = ["gwproxy.gwproxy-system.svc", "10.0.0.1"];
const VALIDITY = { notBefore: new Date(Date.now() - HOUR_MS), notAfter: new Date(Date.now() + 100 * HOUR_MS) };

class MemoryStore implements AuthorityStore {
  readonly name = "Secret gwproxy-system/gwproxy-xds-cert";
  entries: StoredEntries | undefined;
  /** What another replica makes just before this one does. */
  other: StoredEntries | undefined;

  read(): Promise<StoredEntries | undefined> {
    return Promise.resolve(this.entries);
  }

  create(entries: StoredEntries): Promise<boolean> {
    this.entries = this.other ?? entries;
    return Promise.resolve(this.other === undefined);
  }
}

function certificatesOf(store: MemoryStore): {
  readonly certificates: ServingCertificates;
  readonly clock: TestClock;
  readonly lines: readonly string[];
} {
  const clock = testClock(Date.now());
  const { log, lines } = recordingLog();
  return { certificates: new ServingCertificates({ store, names: NAMES, clock, log }), clock, lines };
}

function isSignedBy({ certificate, ca }: ServingCertificate): boolean {
  const leaf = new X509Certificate(certificate.certificate);
  return leaf.verify(new X509Certificate(ca).publicKey);
}

test("without a Secret an authority is made and stored, and a leaf of it serves for a day", async () => {
  const store = new MemoryStore();
  const serving = await certificatesOf(store).certificates.start();
  assert.equal(store.entries?.["ca.crt"], serving.ca);
  assert.match(store.entries?.["ca.key"] ?? "", /PRIVATE KEY/);
  assert.ok(isSignedBy(serving));
  const leaf = new X509Certificate(serving.certificate.certificate);
  assert.equal(leaf.checkHost(NAMES[0] ?? ""), NAMES[0]);
  assert.equal(leaf.checkIP("10.0.0.1"), "10.0.0.1");
  const life = leaf.validToDate.getTime() - Date.now();
  assert.ok(life > 23 * HOUR_MS && life < 25 * HOUR_MS);
  const authority = new X509Certificate(serving.ca);
  assert.ok(authority.validToDate.getTime() - Date.now() > 3_600 * 24 * HOUR_MS);
});

test("of two replicas that make one at the same time, both use the first", async () => {
  const store = new MemoryStore();
  const { certificate, key } = createAuthority("other", VALIDITY);
  store.other = { "ca.crt": certificate, "ca.key": key };
  const serving = await certificatesOf(store).certificates.start();
  assert.equal(serving.ca, certificate);
  assert.ok(isSignedBy(serving));
});

test("a leaf is renewed twelve hours before its end, and the authority stays", async (t) => {
  const { certificates, clock } = certificatesOf(new MemoryStore());
  t.after(() => certificates.stop());
  const first = await certificates.start();
  const later: ServingCertificate[] = [];
  certificates.onChange((serving) => void later.push(serving));
  await clock.advance(11 * HOUR_MS);
  assert.equal(later.length, 0);
  await clock.advance(2 * HOUR_MS);
  assert.equal(later.length, 1);
  assert.equal(later[0]?.ca, first.ca);
  assert.notEqual(later[0]?.certificate.certificate, first.certificate.certificate);
});

test("an authority in tls.crt is signed with, and one that takes its place is taken up", async (t) => {
  const store = new MemoryStore();
  const [one, other] = [createAuthority("one", VALIDITY), createAuthority("other", VALIDITY)];
  store.entries = { "tls.crt": one.certificate, "tls.key": one.key, "ca.crt": one.certificate };
  const { certificates, clock } = certificatesOf(store);
  t.after(() => certificates.stop());
  assert.equal((await certificates.start()).ca, one.certificate);
  const later: ServingCertificate[] = [];
  certificates.onChange((serving) => void later.push(serving));
  store.entries = { "tls.crt": other.certificate, "tls.key": other.key };
  await clock.advance(61_000);
  assert.equal(later[0]?.ca, other.certificate);
  assert.ok(later[0] !== undefined && isSignedBy(later[0]));
});

test("a serving pair of the operator is served as it is", async () => {
  const store = new MemoryStore();
  const authority = createAuthority("one", VALIDITY);
  const leaf = createLeaf(authority, NAMES, VALIDITY);
  store.entries = { "tls.crt": leaf.certificate, "tls.key": leaf.key, "ca.crt": authority.certificate };
  const serving = await certificatesOf(store).certificates.start();
  assert.deepEqual(serving, { certificate: leaf, ca: authority.certificate });
});

test("a Secret that is broken at run time changes nothing and is complained of without its content", async (t) => {
  const store = new MemoryStore();
  const { certificates, clock, lines } = certificatesOf(store);
  t.after(() => certificates.stop());
  await certificates.start();
  certificates.onChange(() => assert.fail("nothing may change"));
  store.entries = { "ca.crt": "broken", "ca.key": "hunter2" };
  await clock.advance(61_000);
  assert.match(lines.at(-1) ?? "", /could not be renewed.*ca\.crt and ca\.key are no PEM/);
  assert.doesNotMatch(lines.join(""), /hunter2/);
});

const one = createAuthority("one", VALIDITY);
const expired = createAuthority("old", { notBefore: new Date(0), notAfter: new Date(1_000) });
const leaf = createLeaf(one, NAMES, VALIDITY);

const UNUSABLE: readonly [string, StoredEntries, RegExp][] = [
  ["nothing", {}, /needs ca\.crt and ca\.key, or tls\.crt and tls\.key/],
  ["half", { "ca.crt": one.certificate }, /needs ca\.crt and ca\.key/],
  ["another key", { "ca.crt": one.certificate, "ca.key": expired.key }, /ca\.key is not the key of ca\.crt/],
  ["a serving pair alone", { "tls.crt": leaf.certificate, "tls.key": leaf.key }, /ca\.crt must say who signed it/],
  ["an authority that has expired", { "ca.crt": expired.certificate, "ca.key": expired.key }, /has expired; replace/],
];

for (const [name, entries, sentence] of UNUSABLE) {
  test(`a Secret that holds ${name} stops the start with a sentence`, async () => {
    const store = new MemoryStore();
    store.entries = entries;
    await assert.rejects(certificatesOf(store).certificates.start(), sentence);
  });
}
