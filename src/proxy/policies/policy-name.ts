/** Names policies for reports by the keys of their resources. */

/** The objects that are sent as policies, by the first part of their key (ir/keys.ts). */
const KINDS: Readonly<Record<string, string>> = {
  policy: "GwPolicy",
  backendtlspolicy: "BackendTLSPolicy",
  "gateway-client": "Gateway",
};

/**
 * Returns the object of a policy, such as "BackendTLSPolicy default/p", and for a GwPolicy the field as well:
 * "GwPolicy default/p spec.traffic.cors". Names of policies that were merged follow one another after commas.
 * @param keys one key, or several with spaces between them; the key of anything else is returned as it is
 */
export function printPolicy(keys: string, field = ""): string {
  const kind = KINDS[keys.slice(0, keys.indexOf("/"))];
  if (kind === undefined) return keys;
  const names = keys.split(" ").map((key) => key.slice(key.indexOf("/") + 1));
  return `${kind} ${names.join(", ")}${kind === "GwPolicy" && field !== "" ? ` ${field}` : ""}`;
}
