/** TLS towards upstreams: what a BackendTls message means for a handshake (versions 1.2 and 1.3, SNI, whom to believe). */
import { isIP } from "node:net";
import { checkServerIdentity, createSecureContext, type ConnectionOptions, type PeerCertificate } from "node:tls";
import { VerifyMode, type BackendTls } from "../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { ConfigError, messageOf } from "../../lib/errors.ts";

const prepared = new WeakMap<BackendTls, ConnectionOptions>();

/**
 * Options for tls.connect, made once per message.
 * @param host name or address that the connection goes to
 * @param protocols offered (ALPN) where the message names none
 * @throws ConfigError when certificates, key or groups cannot be used
 */
export function tlsOptions(tls: BackendTls, host: string, protocols: readonly string[] = []): ConnectionOptions {
  let base = prepared.get(tls);
  if (base === undefined) prepared.set(tls, (base = prepare(tls)));
  const name = tls.sni !== "" ? tls.sni : host;
  return {
    ...base,
    ALPNProtocols: tls.alpn.length === 0 ? [...protocols] : tls.alpn,
    // An address is no server name (RFC 6066 3): none is sent, and the certificate must hold the address itself.
    ...(isIP(name) === 0 ? { servername: name } : {}),
    checkServerIdentity: (_asked, certificate) => checkIdentity(tls, name, certificate),
  };
}

function prepare(tls: BackendTls): ConnectionOptions {
  try {
    return {
      secureContext: createSecureContext({
        minVersion: "TLSv1.2",
        maxVersion: "TLSv1.3",
        ...(tls.caPem === "" ? {} : { ca: tls.caPem }),
        // An empty list, not an absent one: absent would mean the system roots.
        ...(tls.trustNothing ? { ca: [] } : {}),
        ...(tls.certificatePem === "" ? {} : { cert: tls.certificatePem, key: tls.privateKeyPem }),
        ...(tls.keyExchangeGroups.length === 0 ? {} : { ecdhCurve: tls.keyExchangeGroups.join(":") }),
      }),
      rejectUnauthorized: tls.trustNothing || tls.verify !== VerifyMode.NONE,
    };
  } catch (cause) {
    throw new ConfigError(`tls: ${messageOf(cause)}`, { cause });
  }
}

function checkIdentity(tls: BackendTls, name: string, certificate: PeerCertificate): Error | undefined {
  if (tls.verify === VerifyMode.CHAIN_ONLY || tls.verify === VerifyMode.NONE) return undefined;
  if (tls.subjectAltNames.length === 0) return checkServerIdentity(name, certificate);
  const listed = certificate.subjectaltname ?? "";
  // Quoted entries hold separators of their own and could pass for several; no certificate we trust needs them.
  const names = new Set(listed.includes('"') ? [] : listed.split(", "));
  for (const wanted of tls.subjectAltNames) {
    if (wanted.includes("://") ? names.has(`URI:${wanted}`) : checkServerIdentity(wanted, certificate) === undefined)
      return undefined;
  }
  return new Error("the certificate holds none of the required subject names");
}

/** One pool per identity: two messages that say the same share connections, two that differ never do. */
export function tlsKey(tls: BackendTls): string {
  return JSON.stringify([
    tls.sni,
    tls.caPem,
    tls.trustNothing,
    tls.certificatePem,
    tls.privateKeyPem,
    tls.verify,
    tls.subjectAltNames,
    tls.alpn,
    tls.keyExchangeGroups,
  ]);
}
