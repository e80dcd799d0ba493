/** The webhook's certificates as a Secret: one entry per part, the version that was read guards every write. */
import type { CertificateStore } from "../../admission/certificates.ts";
import { SourceError } from "../../lib/errors.ts";
import type { KubernetesClient } from "../../sources/kubernetes/client.ts";
import { createSecretStore } from "../../sources/kubernetes/secret-store.ts";

export function createCertificateStore(client: KubernetesClient, namespace: string): CertificateStore {
  const secret = createSecretStore(client, { namespace, name: "gwproxy-webhook-cert", type: "Opaque" });
  let version: string | undefined;
  return {
    async read() {
      const stored = await secret.read();
      version = stored?.resourceVersion;
      if (stored === undefined) return undefined;
      const { data } = stored;
      return {
        authority: { certificate: data["ca.crt"] ?? "", key: data["ca.key"] ?? "" },
        leaf: { certificate: data["tls.crt"] ?? "", key: data["tls.key"] ?? "" },
        previousAuthority: data["previous-ca.crt"] ?? "",
      };
    },
    async write({ authority, leaf, previousAuthority }) {
      const data = {
        "ca.crt": authority.certificate,
        "ca.key": authority.key,
        "tls.crt": leaf.certificate,
        "tls.key": leaf.key,
        ...(previousAuthority === "" ? {} : { "previous-ca.crt": previousAuthority }),
      };
      if ((await secret.write(data, version)) === "conflict") {
        throw new SourceError("another replica wrote the certificates; theirs are read in the next turn");
      }
    },
  };
}
