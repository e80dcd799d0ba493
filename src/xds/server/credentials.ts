/**
 * Provides server certificates that can be replaced while connections stay open: a certificate lives for hours, a
 * discovery stream for weeks. `discovery.ts` uses it.
 */
import { ServerCredentials } from "@grpc/grpc-js";

export interface ServerCertificate {
  /** PEM chain, leaf first. */
  readonly certificate: string;
  /** Private key in PEM. */
  readonly key: string;
}

export class ReloadableCredentials extends ServerCredentials {
  constructor(certificate: ServerCertificate) {
    super({ minVersion: "TLSv1.2" }, contextOf(certificate));
  }

  /** Replaces the certificate for new handshakes; open connections keep theirs. */
  replace(certificate: ServerCertificate): void {
    this.updateSecureContextOptions(contextOf(certificate));
  }

  override _equals(other: ServerCredentials): boolean {
    return other === this;
  }
}

function contextOf({ certificate, key }: ServerCertificate): { cert: string; key: string } {
  return { cert: certificate, key };
}
