/**
 * Keeps the webhook's certificates in a Secret that all replicas share. It implements the CertificateStore of
 * src/admission; runtime/webhook.ts connects the two.
 */
import type { CertificateStore } from "../../admission/certificates.ts";
import { SourceError } from "../../lib/errors.ts";
import type { SecretStore } from "./secret-store.ts";

const ENTRIES = {
  authorityCertificate: "ca.crt",
  authorityKey: "ca.key",
  previousAuthority: "previous-ca.crt",
  leafCertificate: "tls.crt",
  leafKey: "tls.key",
} as const;

/** @param secrets a store of type "Opaque" */
export function createCertificateStore(secrets: SecretStore): CertificateStore {
  let read: string | undefined;
  return {
    async read() {
      const stored = await secrets.read();
      read = stored?.resourceVersion;
      if (stored === undefined) return undefined;
      // A missing or broken entry makes an invalid pair, which the caller then replaces.
      const text = (name: keyof typeof ENTRIES): string => stored.data[ENTRIES[name]] ?? "";
      return {
        authority: { certificate: text("authorityCertificate"), key: text("authorityKey") },
        leaf: { certificate: text("leafCertificate"), key: text("leafKey") },
        previousAuthority: text("previousAuthority"),
      };
    },
    async write({ authority, leaf, previousAuthority }) {
      const data = {
        [ENTRIES.authorityCertificate]: authority.certificate,
        [ENTRIES.authorityKey]: authority.key,
        [ENTRIES.leafCertificate]: leaf.certificate,
        [ENTRIES.leafKey]: leaf.key,
        [ENTRIES.previousAuthority]: previousAuthority,
      };
      const outcome = await secrets.write(data, read);
      if (outcome === "conflict") throw new SourceError("somebody else has renewed the certificates meanwhile");
    },
  };
}
