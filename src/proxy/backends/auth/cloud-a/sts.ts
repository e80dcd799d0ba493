/** Calls the Security Token Service: roles for keys, and roles for the token of a workload. */
import type { CalloutAnswer } from "../../../callouts/callout.ts";
import { HeaderList } from "../../../../lib/header-list.ts";
import { monotonicMs } from "../../../../lib/time/monotonic.ts";
import { ProxyError } from "../../../exchange/errors.ts";
import type { FetchedToken } from "../../../tokens/token.ts";
import type { AuthCaller } from "../../../upstream/auth.ts";
import { isClockRefused } from "../../../upstream/send-signed.ts";
import type { Environment } from "../shared/ambient-hosts.ts";
import type { CloudClient } from "../shared/cloud-client.ts";
import type { ServiceClocks } from "./service-clocks.ts";
import { signRequest, type AwsCredentials } from "./sigv4.ts";

const VERSION = "2011-06-15";

interface StsCall {
  readonly region: string;
  readonly environment: Environment;
  readonly caller: AuthCaller;
}

interface StsSigner {
  readonly keys: AwsCredentials;
  readonly clocks: ServiceClocks;
}

/** @param signer undefined for an action that is not signed */
export async function callSts(
  client: CloudClient,
  parameters: readonly (readonly [string, string])[],
  signer: StsSigner | undefined,
  { region, environment, caller }: StsCall,
): Promise<FetchedToken<AwsCredentials>> {
  const url = new URL(environment["AWS_ENDPOINT_URL_STS"] ?? endpointOf(region));
  const body = new URLSearchParams([
    ["Version", VERSION],
    ...parameters.map(([name, value]) => [name, value]),
  ]).toString();
  const headers = new HeaderList(["content-type", "application/x-www-form-urlencoded; charset=utf-8"]);
  const unsigned = { method: "POST", path: url.pathname + url.search, headers, body: Buffer.from(body) };
  const send = (): Promise<CalloutAnswer> => {
    headers.set("host", url.host);
    if (signer !== undefined)
      signRequest(unsigned, signer.keys, { region, service: "sts" }, signer.clocks.nowMs(url.hostname));
    headers.remove("host");
    return client.send({ method: "POST", url: url.href, headers, body }, caller);
  };
  let answer = await send();
  if (isClockRefused(answer, (date) => signer?.clocks.correct(url.hostname, date) === true)) answer = await send();
  if (answer.status !== 200) throw unusable(`the token service answered with status ${answer.status}`);
  return readCredentials(answer);
}

function endpointOf(region: string): string {
  const suffix = region.startsWith("cn-") ? "amazonaws.com.cn" : "amazonaws.com";
  return `https://sts.${region}.${suffix}/`;
}

/** The answer is XML of a fixed form, whose members hold no markup. */
function readCredentials(answer: CalloutAnswer): FetchedToken<AwsCredentials> {
  const xml = answer.body.toString();
  const member = (name: string): string => new RegExp(`<${name}>([^<]*)</${name}>`).exec(xml)?.[1]?.trim() ?? "";
  return fetchedCredentials(
    {
      accessKeyId: member("AccessKeyId"),
      secretAccessKey: member("SecretAccessKey"),
      sessionToken: member("SessionToken"),
    },
    member("Expiration"),
    answer,
  );
}

/**
 * @param expiration as a date
 * @param answer whose `Date` tells how far the clocks are apart
 * @throws ProxyError credential_unavailable for keys that are incomplete or cannot stand in a header
 */
export function fetchedCredentials(
  credentials: AwsCredentials,
  expiration: string,
  { headers }: Pick<CalloutAnswer, "headers">,
): FetchedToken<AwsCredentials> {
  const end = Date.parse(expiration);
  const isComplete = credentials.accessKeyId !== "" && credentials.secretAccessKey !== "";
  if (
    !isComplete ||
    !Object.values(credentials).every((text: string) => /^[\x21-\x7e]*$/.test(text)) ||
    Number.isNaN(end)
  )
    throw unusable("the answer with credentials is malformed");
  const date = Date.parse(headers.get("date") ?? "");
  const fetchedAtMs = monotonicMs();
  return { value: credentials, fetchedAtMs, expiresAtMs: fetchedAtMs + end - (Number.isNaN(date) ? Date.now() : date) };
}

function unusable(detail: string): ProxyError {
  return new ProxyError("credential_unavailable", { detail });
}
