/**
 * Decides which hosts may get a credential of the data plane's own environment. Whoever may write a backend could
 * otherwise send the identity of the machine to a host of their own. Kinds with an ambient identity use it.
 */
import { VerifyMode, type BackendTls } from "../../../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import type { AuthCall } from "../../../upstream/auth.ts";
import { ProxyError } from "../../../exchange/errors.ts";

export type Environment = Readonly<Record<string, string | undefined>>;

/** Domains of the clouds, which hold where `GWPROXY_AMBIENT_IDENTITY_HOSTS` names no others. */
const OWN_DOMAINS = {
  cloudA: ["*.amazonaws.com", "*.amazonaws.com.cn", "*.api.aws"],
  cloudB: ["*.azure.com", "*.azure.us", "*.azure.cn", "*.windows.net"],
  cloudC: ["*.googleapis.com", "*.run.app", "*.cloudfunctions.net", "*.a.run.app"],
} as const;

export type Cloud = keyof typeof OWN_DOMAINS;

/** @throws ProxyError credential_unavailable */
export function checkAmbientHost(
  cloud: Cloud,
  { host, connection: { tls, proxy } }: Pick<AuthCall, "host" | "connection">,
  environment: Environment,
): void {
  const named = environment["GWPROXY_AMBIENT_IDENTITY_HOSTS"];
  const patterns: readonly string[] =
    named === undefined ? OWN_DOMAINS[cloud] : named.split(",").map((pattern) => pattern.trim().toLowerCase());
  if (patterns.includes("*")) return;
  const check = (name: string): void => {
    if (patterns.some((pattern) => matches(pattern, name.toLowerCase()))) return;
    throw new ProxyError("credential_unavailable", {
      detail: `${name} is not among the hosts that may get the identity of the environment (GWPROXY_AMBIENT_IDENTITY_HOSTS)`,
    });
  };
  check(host);
  // The author of the backend also chooses the proxy, which then gets what it can read.
  if (proxy !== undefined && !provesHost(tls, host)) check(proxy.resolve().target.host);
}

/** Decides whether nobody but the host can end the connection: its name is verified, by the roots of the system. */
function provesHost(tls: BackendTls | undefined, host: string): boolean {
  return (
    tls !== undefined &&
    tls.caPem === "" &&
    tls.verify === VerifyMode.UNSPECIFIED &&
    tls.subjectAltNames.length === 0 &&
    (tls.sni === "" || tls.sni === host) &&
    !tls.spiffe
  );
}

/** @param pattern a name, or `*.` and a suffix */
function matches(pattern: string, host: string): boolean {
  return pattern.startsWith("*.") ? host.endsWith(pattern.slice(1)) : pattern === host;
}
