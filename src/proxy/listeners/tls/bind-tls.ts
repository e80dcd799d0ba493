/**
 * Combines the TLS settings of all listeners of a Bind into the BindTls that TlsLayer uses; ListenerTable builds it.
 */
import type { FrontendTls, Listener } from "../../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { HANDSHAKE_TIMEOUT_MS, type BindTls, type ClientCertificates, type ServerTls } from "./server-tls.ts";
import { handshakeOptions } from "./handshake-options.ts";

interface TlsListener {
  readonly message: Listener;
  readonly tls: ServerTls | undefined;
}

export function bindTls(
  listeners: readonly TlsListener[],
  find: (name: string) => TlsListener | undefined,
  frontend: FrontendTls | undefined,
): BindTls {
  const settings = new Map<Listener, string>();
  return {
    find: (name) => find(name)?.tls,
    settingsOf(name) {
      const message = find(name)?.message;
      if (message?.tls === undefined) return undefined;
      let text = settings.get(message);
      if (text === undefined) settings.set(message, (text = settingsText(message, frontend)));
      return text;
    },
    clients: strictest(listeners),
    handshakeTimeoutMs: frontend?.handshakeTimeoutMs || HANDSHAKE_TIMEOUT_MS,
    choice: handshakeOptions(undefined, frontend),
    protocols: frontend?.alpn.length ? frontend.alpn : undefined,
  };
}

/** The server requests a client certificate before it has chosen the listener, so the strictest mode of all applies. */
function strictest(listeners: readonly TlsListener[]): ClientCertificates {
  // A listener with a check of its own (SPIFFE) has a server of its own, so it does not affect the others.
  const modes = new Set(listeners.map(({ tls }) => (tls?.verifyClient === undefined ? tls?.clients : undefined)));
  return modes.has("required") ? "required" : modes.has("optional") ? "optional" : "ignored";
}

function settingsText({ key, hostname, tls }: Listener, frontend: FrontendTls | undefined): string {
  return JSON.stringify([key, hostname, { ...tls, certificatePem: "", privateKeyPem: "" }, frontend]);
}
