/** Server certificates that can be replaced while connections stay open: a leaf lives for hours, a stream for weeks. */
import { ServerCredentials } from "@grpc/grpc-js";

export interface ServerCertificate {
  /** PEM, leaf first. */
  readonly certificate: string;
  /** PEM. */
  readonly key: string;
}

export class ReloadableCredentials extends ServerCredentials {
  constructor(certificate: ServerCertificate) {
    super({ minVersion: "TLSv1.2" }, contextOf(certificate));
  }

  /** New handshakes use it; connections that stand keep theirs. */
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
