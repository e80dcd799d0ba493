/**
 * Finds the identity that the environment of the data plane offers: the chain of AWS tools. The first source that the
 * environment names is used, and when it fails no other takes its place.
 */
import { readFile } from "node:fs/promises";
import { HeaderList } from "../../../../lib/header-list.ts";
import { isLocalHost } from "../../../../lib/network/local-address.ts";
import { monotonicMs } from "../../../../lib/time/monotonic.ts";
import type { CalloutAnswer } from "../../../callouts/callout.ts";
import { ProxyError } from "../../../exchange/errors.ts";
import type { FetchedToken } from "../../../tokens/token.ts";
import type { AuthCaller } from "../../../upstream/auth.ts";
import type { Environment } from "../shared/ambient-hosts.ts";
import type { CloudClient } from "../shared/cloud-client.ts";
import { parseAnswer } from "../shared/parse-answer.ts";
import { readProfile, type Profile } from "./profile.ts";
import type { AwsCredentials } from "./sigv4.ts";
import { callSts, fetchedCredentials } from "./sts.ts";

export interface SourceDeps {
  readonly client: CloudClient;
  readonly environment: Environment;
}

const CONTAINER_HOST = "http://169.254.170.2";
/** Hosts of container agents, which the full URI may name without TLS. */
const CONTAINER_HOSTS = ["169.254.170.2", "169.254.170.23", "fd00:ec2::23"];
const METADATA = "http://169.254.169.254";
const ROLE_PATH = "/latest/meta-data/iam/security-credentials/";
/** Keys without an end are looked up again after this time, so that a changed file is noticed. */
const UNENDING_MS = 3_600_000;

/** Returns the keys of the environment variables, the same object for the same keys. */
export function environmentKeys(environment: Environment): AwsCredentials | undefined {
  const accessKeyId = environment["AWS_ACCESS_KEY_ID"] ?? "";
  const secretAccessKey = environment["AWS_SECRET_ACCESS_KEY"] ?? "";
  const sessionToken = environment["AWS_SESSION_TOKEN"] ?? "";
  if (accessKeyId === "" || secretAccessKey === "") return undefined;
  const isKnown =
    known?.accessKeyId === accessKeyId &&
    known.secretAccessKey === secretAccessKey &&
    known.sessionToken === sessionToken;
  return known !== undefined && isKnown ? known : (known = { accessKeyId, secretAccessKey, sessionToken });
}

let known: AwsCredentials | undefined;

/** Fetches the identity from the sources behind the environment variables. @throws ProxyError, CalloutError */
export async function fetchIdentity(
  deps: SourceDeps,
  region: string,
  caller: AuthCaller,
): Promise<FetchedToken<AwsCredentials>> {
  const { environment } = deps;
  const profile = await readProfile(environment);
  if (profile === undefined && environment["AWS_PROFILE"] !== undefined)
    throw unavailable(`the profile ${environment["AWS_PROFILE"]} does not exist`);
  const keys = profile === undefined ? undefined : profileKeys(profile);
  if (keys !== undefined) return unending(keys);
  const roleArn = profile?.["role_arn"] ?? environment["AWS_ROLE_ARN"] ?? "";
  const tokenFile = profile?.["web_identity_token_file"] ?? environment["AWS_WEB_IDENTITY_TOKEN_FILE"] ?? "";
  if (tokenFile !== "") return assumeWithToken(deps, { tokenFile, roleArn, profile, region, caller });
  if (profile?.["role_arn"] !== undefined)
    throw unavailable("profiles whose role needs another profile are not supported");
  const container = containerUrl(environment);
  if (container !== undefined) return fromContainer(deps, container, caller);
  if (environment["AWS_EC2_METADATA_DISABLED"]?.toLowerCase() === "true")
    throw unavailable("the environment offers no credentials of cloud A");
  return fromInstance(deps, caller);
}

/** Returns the region that the environment offers. @throws ProxyError, CalloutError */
export async function fetchRegion(deps: SourceDeps, caller: AuthCaller): Promise<string> {
  const { environment } = deps;
  const region = environmentRegion(environment) ?? (await readProfile(environment))?.["region"];
  if (region !== undefined) return region;
  if (environment["AWS_EC2_METADATA_DISABLED"]?.toLowerCase() === "true") throw unavailable("no region is configured");
  const answer = await askInstance(deps, "/latest/meta-data/placement/region", caller);
  return answer.body.toString().trim();
}

export function environmentRegion(environment: Environment): string | undefined {
  return environment["AWS_REGION"] || environment["AWS_DEFAULT_REGION"] || undefined;
}

function profileKeys(profile: Profile): AwsCredentials | undefined {
  const { aws_access_key_id: accessKeyId = "", aws_secret_access_key: secretAccessKey = "" } = profile;
  if (accessKeyId === "" || secretAccessKey === "") return undefined;
  return { accessKeyId, secretAccessKey, sessionToken: profile["aws_session_token"] ?? "" };
}

function unending(value: AwsCredentials): FetchedToken<AwsCredentials> {
  const fetchedAtMs = monotonicMs();
  return { value, fetchedAtMs, expiresAtMs: fetchedAtMs + UNENDING_MS };
}

interface WebIdentity {
  readonly tokenFile: string;
  readonly roleArn: string;
  readonly profile: Profile | undefined;
  readonly region: string;
  readonly caller: AuthCaller;
}

/** The file is read anew for each call, because its token is renewed. */
async function assumeWithToken(
  { client, environment }: SourceDeps,
  { tokenFile, roleArn, profile, region, caller }: WebIdentity,
): Promise<FetchedToken<AwsCredentials>> {
  const session = profile?.["role_session_name"] ?? environment["AWS_ROLE_SESSION_NAME"] ?? "gwproxy";
  const token = await readFile(tokenFile, "utf8").catch(() => {
    throw unavailable(`${tokenFile} cannot be read`);
  });
  const parameters: [string, string][] = [
    ["Action", "AssumeRoleWithWebIdentity"],
    ["RoleArn", roleArn],
    ["RoleSessionName", session],
    ["WebIdentityToken", token.trim()],
  ];
  return callSts(client, parameters, undefined, { region, environment, caller });
}

/** @throws ProxyError credential_unavailable for a host that no agent has */
function containerUrl(environment: Environment): string | undefined {
  const relative = environment["AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"];
  if (relative !== undefined && relative !== "") return CONTAINER_HOST + relative;
  const full = environment["AWS_CONTAINER_CREDENTIALS_FULL_URI"];
  if (full === undefined || full === "") return undefined;
  const url = URL.parse(full);
  const host = url?.hostname.replace(/^\[|\]$/g, "") ?? "";
  if (url?.protocol === "https:" || CONTAINER_HOSTS.includes(host) || isLocalHost(host)) return full;
  throw unavailable("AWS_CONTAINER_CREDENTIALS_FULL_URI names a host that is no agent of containers");
}

async function fromContainer(
  { client, environment }: SourceDeps,
  url: string,
  caller: AuthCaller,
): Promise<FetchedToken<AwsCredentials>> {
  const file = environment["AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"];
  const token =
    file === undefined
      ? environment["AWS_CONTAINER_AUTHORIZATION_TOKEN"]
      : await readFile(file, "utf8").catch(() => {
          throw unavailable(`${file} cannot be read`);
        });
  const headers = new HeaderList(token === undefined ? [] : ["authorization", token.trim()]);
  return readKeys(checked(await client.send({ url, headers }, caller), "the agent of the container"));
}

async function fromInstance(deps: SourceDeps, caller: AuthCaller): Promise<FetchedToken<AwsCredentials>> {
  const role = (await askInstance(deps, ROLE_PATH, caller)).body.toString().trim().split("\n")[0] ?? "";
  if (!/^[\w+=,.@-]+$/.test(role)) throw unavailable("the metadata server names no role");
  return readKeys(await askInstance(deps, ROLE_PATH + role, caller));
}

/** Version 2 of the metadata service: a session token first, which a forged request of a browser or proxy cannot get. */
async function askInstance(
  { client, environment }: SourceDeps,
  path: string,
  caller: AuthCaller,
): Promise<CalloutAnswer> {
  const base = (environment["AWS_EC2_METADATA_SERVICE_ENDPOINT"] || METADATA).replace(/\/$/, "");
  const ttl = new HeaderList(["x-aws-ec2-metadata-token-ttl-seconds", "60"]);
  const session = await client.send({ method: "PUT", url: `${base}/latest/api/token`, headers: ttl }, caller);
  const token = checked(session, "the metadata server").body.toString().trim();
  if (!/^[\x21-\x7e]+$/.test(token)) throw unavailable("the metadata server gave no session token");
  const headers = new HeaderList(["x-aws-ec2-metadata-token", token]);
  return checked(await client.send({ url: base + path, headers }, caller), "the metadata server");
}

function checked(answer: CalloutAnswer, who: string): CalloutAnswer {
  if (answer.status !== 200) throw unavailable(`${who} answered with status ${answer.status}`);
  return answer;
}

function readKeys(answer: CalloutAnswer): FetchedToken<AwsCredentials> {
  const found = parseAnswer(answer.body) ?? {};
  const text = (name: string): string => (typeof found[name] === "string" ? found[name] : "");
  const keys = {
    accessKeyId: text("AccessKeyId"),
    secretAccessKey: text("SecretAccessKey"),
    sessionToken: text("Token"),
  };
  return fetchedCredentials(keys, text("Expiration"), answer);
}

function unavailable(detail: string): ProxyError {
  return new ProxyError("credential_unavailable", { detail });
}
