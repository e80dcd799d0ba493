/** What all listeners of a Bind together need to shake hands. */
import type { FrontendTls, Listener } from "../../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { HANDSHAKE_TIMEOUT_MS, type BindTls, type ClientCertificates, type ServerTls } from "./server-tls.ts";
import { handshakeOptions } from "./handshake-options.ts";

interface Placed {
  readonly message: Listener;
  readonly tls: ServerTls | undefined;
}

export function bindTls(
  listeners: readonly Placed[],
  find: (name: string) => Placed | undefined,
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

/** A client is asked before it is known which listener it means. */
function strictest(listeners: readonly Placed[]): ClientCertificates {
  // Those that ask by themselves ask nobody else's clients.
  const modes = new Set(listeners.map(({ tls }) => (tls?.refusal === undefined ? tls?.clients : undefined)));
  return modes.has("required") ? "required" : modes.has("optional") ? "optional" : "ignored";
}

function settingsText({ key, hostname, tls }: Listener, frontend: FrontendTls | undefined): string {
  return JSON.stringify([key, hostname, { ...tls, certificatePem: "", privateKeyPem: "" }, frontend]);
}
