/**
 * Decides which hosts may get a credential of the data plane's own environment. Whoever may write a backend could
 * otherwise send the identity of the machine to a host of their own. Kinds with an ambient identity use it.
 */
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
export function checkAmbientHost(cloud: Cloud, host: string, environment: Environment): void {
  const named = environment["GWPROXY_AMBIENT_IDENTITY_HOSTS"];
  const patterns = named === undefined ? OWN_DOMAINS[cloud] : named.split(",");
  if (patterns.some((pattern) => matches(pattern.trim().toLowerCase(), host.toLowerCase()))) return;
  throw new ProxyError("credential_unavailable", {
    detail: `${host} is not among the hosts that may get the identity of the environment (GWPROXY_AMBIENT_IDENTITY_HOSTS)`,
  });
}

/** @param pattern a name, `*.` and a suffix, or `*` for all */
function matches(pattern: string, host: string): boolean {
  if (pattern === "*") return true;
  return pattern.startsWith("*.") ? host.endsWith(pattern.slice(1)) : pattern === host;
}
