/**
 * TLS towards clients with the identity of the workload (gwproxy.dev/tls-certificate-source: SPIFFE): each handshake shows
 * the one in force, and the client has to be a workload that its own trust domain vouches for. Without an identity every
 * handshake fails.
 */
import { constants } from "node:crypto";
import { createSecureContext, type SecureContext, type SecureContextOptions, type TLSSocket } from "node:tls";
import type { WorkloadIdentity } from "../../spiffe/identity.ts";
import { chainOf, verifyPeer } from "../../spiffe/peer.ts";
import type { IdentitySource } from "../../spiffe/workload-api.ts";
import type { ServerTls } from "./server-tls.ts";
import type { HandshakeOptions } from "./handshake-options.ts";

interface Shown {
  readonly identity: WorkloadIdentity;
  readonly options: SecureContextOptions;
  readonly context: SecureContext;
}

export class WorkloadServerTls implements ServerTls {
  readonly clients = "required";
  readonly passthrough = false;
  readonly choice: HandshakeOptions;
  readonly refusal: (socket: TLSSocket) => string | undefined;
  readonly #identities: IdentitySource;
  #shown: Shown | undefined;

  constructor(identities: IdentitySource, choice: HandshakeOptions) {
    this.#identities = identities;
    // A session that goes on says nothing about who is believed now, and brings no chain to look at.
    this.choice = { ...choice, secureOptions: (choice.secureOptions ?? 0) | constants.SSL_OP_NO_TICKET };
    this.refusal = this.#refusal.bind(this);
    // Starts the watch, long before a handshake needs it.
    identities.current();
  }

  get context(): SecureContext | undefined {
    return this.#current()?.context;
  }

  get options(): SecureContextOptions | undefined {
    return this.#current()?.options;
  }

  /** The same object while the identity is the same. */
  #current(): Shown | undefined {
    const identity = this.#identities.current();
    if (typeof identity === "string") return undefined;
    if (this.#shown?.identity !== identity) {
      const options: SecureContextOptions = {
        ...this.choice,
        cert: identity.certificatePem,
        key: identity.privateKeyPem,
        ca: [...identity.authoritiesPem],
        // Each certificate of a bundle is an authority, also one that another has signed.
        allowPartialTrustChain: true,
      };
      this.#shown = { identity, options, context: createSecureContext(options) };
    }
    return this.#shown;
  }

  #refusal(socket: TLSSocket): string | undefined {
    const identity = this.#identities.current();
    if (typeof identity === "string") return identity;
    if (!socket.authorized) return "nobody vouches for the client";
    const peer = verifyPeer(chainOf(socket.getPeerCertificate(true)), identity, Date.now());
    return typeof peer === "string" ? peer : undefined;
  }
}
