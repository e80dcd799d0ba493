/**
 * Finds the keys that requests to AWS are signed with: those of a Secret, or those in the environment of the data plane.
 * The environment's keys are only used for hosts that its operator allows, because a request that they sign can do there
 * whatever their owner may do.
 */
import type { CloudACredential } from "../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { ProxyError } from "../exchange/errors.ts";
import type { AwsCredentials } from "./sigv4.ts";

/** Hosts that the environment's keys may be used for, when `GWPROXY_AMBIENT_IDENTITY_HOSTS` does not name others. */
const OWN_HOSTS = "*.amazonaws.com,*.amazonaws.com.cn,*.api.aws";

type Environment = Readonly<Record<string, string | undefined>>;

/**
 * @param credential undefined for the environment's keys
 * @param host of the request, without a port
 * @returns the same object for the same keys, by which derived keys are kept
 * @throws ProxyError credential_unavailable
 */
export function findAwsCredentials(
  credential: CloudACredential | undefined,
  host: string,
  environment: Environment = process.env,
): AwsCredentials {
  const keys = credential?.keys;
  if (keys === undefined) return environmentKeys(host, environment);
  if (keys.accessKeyId === "" || keys.secretAccessKey === "")
    throw new ProxyError("credential_unavailable", { detail: "the keys of the configuration could not be resolved" });
  return keys;
}

let known: AwsCredentials | undefined;

function environmentKeys(host: string, environment: Environment): AwsCredentials {
  if (!isAllowed(host, environment["GWPROXY_AMBIENT_IDENTITY_HOSTS"] ?? OWN_HOSTS))
    throw new ProxyError("credential_unavailable", {
      detail: `GWPROXY_AMBIENT_IDENTITY_HOSTS does not allow the environment's keys for ${host}`,
    });
  const accessKeyId = environment["AWS_ACCESS_KEY_ID"] ?? "";
  const secretAccessKey = environment["AWS_SECRET_ACCESS_KEY"] ?? "";
  const sessionToken = environment["AWS_SESSION_TOKEN"] ?? "";
  if (accessKeyId === "" || secretAccessKey === "")
    throw new ProxyError("credential_unavailable", {
      detail: "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY are not in the environment",
    });
  const isKnown =
    known?.accessKeyId === accessKeyId &&
    known.secretAccessKey === secretAccessKey &&
    known.sessionToken === sessionToken;
  return known !== undefined && isKnown ? known : (known = { accessKeyId, secretAccessKey, sessionToken });
}

/** @param list patterns with commas between them: names, `*.` and a suffix, or `*` for all */
function isAllowed(host: string, list: string): boolean {
  return list.split(",").some((entry) => {
    const pattern = entry.trim().toLowerCase();
    if (pattern === "*") return true;
    return pattern.startsWith("*.") ? host.toLowerCase().endsWith(pattern.slice(1)) : pattern === host.toLowerCase();
  });
}
