/**
 * Translates a BackendTls message of the IR into options of `tls.connect`: TLS 1.2 and 1.3, SNI, ALPN, trust anchors
 * and the check of the server's identity. `Dial` uses it for each handshake; the secure context is made once per
 * message.
 */
import { isIP } from "node:net";
import { checkServerIdentity, createSecureContext, type ConnectionOptions, type PeerCertificate } from "node:tls";
import { VerifyMode, type BackendTls } from "../../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { ConfigError, messageOf } from "../../../lib/errors.ts";
import type { IdentitySource } from "../../spiffe/workload-api.ts";
import { identityOptions } from "./identity-tls.ts";
import { checkNames } from "./subject-names.ts";

const prepared = new WeakMap<BackendTls, ConnectionOptions>();

/**
 * Returns the options for `tls.connect`; the costly part is cached per message, or per workload identity.
 * @param host name or address of the destination
 * @param protocols offered by ALPN when the message lists none
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
    // SNI carries no addresses (RFC 6066 §3): none is sent then, and the certificate has to hold the address itself.
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
        // An empty list trusts no authority; an absent one would trust the system roots.
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

/** Part of the pool key: equal messages share connections, different ones never do. It contains the private key. */
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
    // A flag is enough: connections of a former identity are retired, so a pool never mixes identities.
    tls.spiffe,
  ]);
}
