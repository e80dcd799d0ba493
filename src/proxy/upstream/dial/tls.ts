/** TLS towards upstreams: what a BackendTls message means for a handshake (versions 1.2 and 1.3, SNI, whom to believe). */
import { isIP } from "node:net";
import { checkServerIdentity, createSecureContext, type ConnectionOptions, type PeerCertificate } from "node:tls";
import { VerifyMode, type BackendTls } from "../../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { ConfigError, messageOf } from "../../../lib/errors.ts";
import type { IdentitySource } from "../../spiffe/workload-api.ts";
import { identityOptions } from "./identity-tls.ts";
import { checkNames } from "./subject-names.ts";

const prepared = new WeakMap<BackendTls, ConnectionOptions>();

/**
 * Options for tls.connect, made once per message, or for the identity in force.
 * @param host name or address that the connection goes to
 * @param protocols offered (ALPN) where the message names none
 * @throws ConfigError when certificates, key or groups cannot be used; ProxyError when there is no identity
 */
export function tlsOptions(
  tls: BackendTls,
  host: string,
  protocols: readonly string[] = [],
  identities?: IdentitySource,
): ConnectionOptions {
  const name = tls.sni !== "" ? tls.sni : host;
  return {
    ...(tls.spiffe ? identityOptions(tls, identities) : inlineOptions(tls, name)),
    ALPNProtocols: tls.alpn.length === 0 ? [...protocols] : tls.alpn,
    // An address is no server name (RFC 6066 3): none is sent, and the certificate must hold the address itself.
    ...(isIP(name) === 0 ? { servername: name } : {}),
  };
}

/** @throws ConfigError when certificates, key or groups cannot be used */
export function checkTls(tls: BackendTls): void {
  if (!tls.spiffe) inlineOptions(tls, "");
}

function inlineOptions(tls: BackendTls, name: string): ConnectionOptions {
  let base = prepared.get(tls);
  if (base === undefined) prepared.set(tls, (base = prepare(tls)));
  return { ...base, checkServerIdentity: (_asked, certificate) => checkIdentity(tls, name, certificate) };
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
  return tls.subjectAltNames.length === 0 ? checkServerIdentity(name, certificate) : checkNames(tls, certificate);
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
    // Connections of a former identity are retired, so that those of one key are those of one identity.
    tls.spiffe,
  ]);
}
