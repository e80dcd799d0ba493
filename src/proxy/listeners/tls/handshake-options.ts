/** Translates TLS versions, cipher suites and key exchange groups of listeners and policies to node's options. */
import { constants } from "node:crypto";
import type { SecureContextOptions } from "node:tls";
import type { FrontendTls, TlsChoice } from "../../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { ConfigError } from "../../../lib/errors.ts";

export type HandshakeOptions = Pick<
  SecureContextOptions,
  "minVersion" | "maxVersion" | "ciphers" | "ecdhCurve" | "honorCipherOrder" | "secureOptions"
>;

/**
 * @param own the listener's own choice; each member that is set replaces the policy's
 * @throws ConfigError when no protocol version remains that supports a chosen cipher suite
 */
export function handshakeOptions(own: TlsChoice | undefined, frontend: FrontendTls | undefined): HandshakeOptions {
  const { choice, keyExchangeGroups = [] } = frontend ?? {};
  const suites = own?.cipherSuites.length ? own.cipherSuites : (choice?.cipherSuites ?? []);
  const newer = suites.filter((suite) => suite.startsWith("TLS13_"));
  // Disable a version for which no suite is chosen; OpenSSL would otherwise use its default suites for it.
  const lowest = suites.length > 0 && newer.length === suites.length ? "1.3" : "1.2";
  const highest = suites.length > 0 && newer.length === 0 ? "1.2" : "1.3";
  const minVersion = later(own?.minVersion || choice?.minVersion || "1.2", lowest);
  const maxVersion = earlier(own?.maxVersion || choice?.maxVersion || "1.3", highest);
  if (minVersion > maxVersion) throw new ConfigError("tls: no version is left that a chosen cipher suite belongs to");
  return {
    minVersion: minVersion === "1.3" ? "TLSv1.3" : "TLSv1.2",
    maxVersion: maxVersion === "1.3" ? "TLSv1.3" : "TLSv1.2",
    // Renegotiation (TLS 1.2) costs the server far more than the client, and could change the client's identity
    // mid-request.
    secureOptions: constants.SSL_OP_NO_RENEGOTIATION,
    ...(suites.length === 0 ? {} : { ciphers: suites.map(suiteName).join(":"), honorCipherOrder: true }),
    ...(keyExchangeGroups.length === 0 ? {} : { ecdhCurve: keyExchangeGroups.map(groupName).join(":") }),
  };
}

function later(a: string, b: string): string {
  return a > b ? a : b;
}

function earlier(a: string, b: string): string {
  return a < b ? a : b;
}

/**
 * Translates the name of a cipher suite to OpenSSL's:
 * TLS13_AES_128_GCM_SHA256 → TLS_AES_128_GCM_SHA256,
 * TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256 → ECDHE-RSA-AES128-GCM-SHA256.
 */
function suiteName(name: string): string {
  if (name.startsWith("TLS13_")) return `TLS_${name.slice(6)}`;
  return name
    .slice(4)
    .replace("_WITH_", "_")
    .replace(/AES_(\d+)/, "AES$1")
    .replace("POLY1305_SHA256", "POLY1305")
    .replaceAll("_", "-");
}

function groupName(name: string): string {
  return name === "X25519_MLKEM768" ? "X25519MLKEM768" : name;
}
