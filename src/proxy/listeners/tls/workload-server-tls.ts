/**
 * TLS of listeners with the workload's SPIFFE identity (option gwproxy.dev/tls-certificate-source: SPIFFE, see
 * docs/spiffe.md). Each handshake presents the identity in force, and the client has to be a workload that its own
 * trust domain has certified. Without an identity every handshake fails. compileServerTls creates one per listener.
 */
import { constants } from "node:crypto";
import { createSecureContext, type SecureContext, type SecureContextOptions, type TLSSocket } from "node:tls";
import type { WorkloadIdentity } from "../../spiffe/identity.ts";
import { chainOf, verifyPeer } from "../../spiffe/peer.ts";
import type { IdentitySource } from "../../spiffe/workload-api.ts";
import type { ServerTls } from "./server-tls.ts";
import type { HandshakeOptions } from "./handshake-options.ts";

interface ServingIdentity {
  readonly identity: WorkloadIdentity;
  readonly options: SecureContextOptions;
  readonly context: SecureContext;
}

export class WorkloadServerTls implements ServerTls {
  readonly clients = "required";
  readonly passthrough = false;
  readonly choice: HandshakeOptions;
  readonly verifyClient: (socket: TLSSocket) => string | undefined;
  readonly #identities: IdentitySource;
  #serving: ServingIdentity | undefined;

  constructor(identities: IdentitySource, choice: HandshakeOptions) {
    this.#identities = identities;
    // Disable session resumption: it would bypass the bundle in force, and a resumed session brings no chain to verify.
    this.choice = { ...choice, secureOptions: (choice.secureOptions ?? 0) | constants.SSL_OP_NO_TICKET };
    this.verifyClient = this.#verifyClient.bind(this);
    // The first call opens the stream to the agent, long before a handshake needs the identity.
    identities.current();
  }

  get context(): SecureContext | undefined {
    return this.#current()?.context;
  }

  get options(): SecureContextOptions | undefined {
    return this.#current()?.options;
  }

  /** Returns the same object while the identity is the same, so that TlsLayer keeps its server. */
  #current(): ServingIdentity | undefined {
    const identity = this.#identities.current();
    if (typeof identity === "string") return undefined;
    if (this.#serving?.identity !== identity) {
      const options: SecureContextOptions = {
        ...this.choice,
        cert: identity.certificatePem,
        key: identity.privateKeyPem,
        ca: [...identity.authoritiesPem],
        // Every certificate of a bundle is a trust anchor, intermediate CAs included.
        allowPartialTrustChain: true,
      };
      this.#serving = { identity, options, context: createSecureContext(options) };
    }
    return this.#serving;
  }

  #verifyClient(socket: TLSSocket): string | undefined {
    const identity = this.#identities.current();
    if (typeof identity === "string") return identity;
    if (!socket.authorized) return "nobody vouches for the client";
    const peer = verifyPeer(chainOf(socket.getPeerCertificate(true)), identity, Date.now());
    return typeof peer === "string" ? peer : undefined;
  }
}
