/**
 * Fetches tokens of Google Cloud: from the metadata server, or with a credential file (AIP-4110). A file of a Secret may
 * come from a tenant: it starts no program, reads only files that the operator has listed, and calls only https URLs or
 * loopback addresses.
 */
import { createPrivateKey } from "node:crypto";
import { readFile } from "node:fs/promises";
import { normalize } from "node:path";
import { create } from "@bufbuild/protobuf";
import { SigningKeySchema } from "../../../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { HeaderList } from "../../../../lib/header-list.ts";
import { isRecord } from "../../../../lib/is-record.ts";
import { isLocalHost } from "../../../../lib/network/local-address.ts";
import { monotonicMs } from "../../../../lib/time/monotonic.ts";
import type { FetchedToken } from "../../../tokens/token.ts";
import type { AuthCaller } from "../../../upstream/auth.ts";
import type { Environment } from "../shared/ambient-hosts.ts";
import { checkToken, readBearer, readObject, unusable } from "../shared/bearer-token.ts";
import type { CloudClient } from "../shared/cloud-client.ts";
import { createJwtSigner } from "../shared/jwt-signer.ts";
import { parseAnswer } from "../shared/parse-answer.ts";

interface SourceDeps {
  readonly client: CloudClient;
  readonly environment: Environment;
  readonly caller: AuthCaller;
}

interface Wanted {
  readonly idToken: boolean;
  /** Of an ID token. */
  readonly audience: string;
}

type File = Readonly<Record<string, unknown>>;

const SCOPE = "https://www.googleapis.com/auth/cloud-platform";
const TOKEN_URI = "https://oauth2.googleapis.com/token";
const JWT_BEARER = "urn:ietf:params:oauth:grant-type:jwt-bearer";
const ASSERTION_SECONDS = 3_600;
const SECRETS = "/var/run/secrets/";

/** @param credentialsJson the file of a Secret; "" for the environment's @throws ProxyError, CalloutError */
export async function fetchGoogleToken(
  credentialsJson: string,
  wanted: Wanted,
  deps: SourceDeps,
): Promise<FetchedToken<string>> {
  if (credentialsJson !== "") return fetchWithFile(parseFile(credentialsJson), wanted, deps, true);
  const path = deps.environment["GOOGLE_APPLICATION_CREDENTIALS"];
  if (path === undefined || path === "") return askMetadata(wanted, deps);
  const text = await readFile(path, "utf8").catch(() => {
    throw unusable(`${path} cannot be read`);
  });
  return fetchWithFile(parseFile(text), wanted, deps, false);
}

function parseFile(text: string): File {
  const file = parseAnswer(Buffer.from(text));
  if (file === undefined) throw unusable("the credential file is not a JSON object");
  return file;
}

/** @param isForeign whether the file came from a Secret */
async function fetchWithFile(
  file: File,
  wanted: Wanted,
  deps: SourceDeps,
  isForeign: boolean,
): Promise<FetchedToken<string>> {
  switch (file["type"]) {
    case "service_account":
    case "gdch_service_account":
      return askWithKey(file, wanted, deps);
    case "authorized_user":
      return askForUser(file, wanted, deps);
    case "impersonated_service_account": {
      const source = file["source_credentials"];
      if (!isRecord(source)) throw unusable("the credential file names no source");
      if (source["type"] === "impersonated_service_account") throw unusable("impersonations do not nest");
      const { value } = await fetchWithFile(source, { idToken: false, audience: "" }, deps, isForeign);
      return impersonate(textOf(file, "service_account_impersonation_url"), value, wanted, deps);
    }
    case "external_account":
      return askForExternal(file, wanted, deps, isForeign);
    default:
      throw unusable("the credential file is of a type that is not served");
  }
}

async function askMetadata(
  { idToken, audience }: Wanted,
  { client, environment, caller }: SourceDeps,
): Promise<FetchedToken<string>> {
  const host = environment["GCE_METADATA_HOST"] || "metadata.google.internal";
  const base = `http://${host}/computeMetadata/v1/instance/service-accounts/default`;
  const headers = new HeaderList(["metadata-flavor", "Google"]);
  const who = "the metadata server";
  if (!idToken) return readBearer(await client.send({ url: `${base}/token`, headers }, caller), who);
  const url = `${base}/identity?${new URLSearchParams({ audience, format: "full" }).toString()}`;
  const answer = await client.send({ url, headers }, caller);
  if (answer.status !== 200) throw unusable(`${who} answered with status ${answer.status}`);
  return ofJwt(answer.body.toString().trim(), who);
}

async function askWithKey(file: File, { idToken, audience }: Wanted, deps: SourceDeps): Promise<FetchedToken<string>> {
  const isDistributed = file["type"] === "gdch_service_account";
  const privateKeyPem = textOf(file, "private_key");
  const id = isDistributed
    ? `system:serviceaccount:${textOf(file, "project")}:${textOf(file, "name")}`
    : textOf(file, "client_email");
  const uri = checkUrl(file["token_uri"] ?? TOKEN_URI);
  const now = Math.floor(Date.now() / 1000);
  const target = idToken ? { target_audience: audience } : { scope: SCOPE };
  const claims = { iss: id, sub: id, aud: uri, iat: now, exp: now + ASSERTION_SECONDS, ...target };
  const assertion = await signWith(privateKeyPem, textOf(file, "private_key_id"), JSON.stringify(claims));
  const form = isDistributed
    ? {
        grant_type: "urn:ietf:params:oauth:token-type:token-exchange",
        audience,
        requested_token_type: "urn:ietf:params:oauth:token-type:access_token",
        subject_token: assertion,
        subject_token_type: "urn:k8s:params:oauth:token-type:serviceaccount",
      }
    : { grant_type: JWT_BEARER, assertion };
  return askTokenUri(uri, form, idToken && !isDistributed, deps);
}

/** The key of a file is RSA, or EC in distributed clouds. */
function signWith(privateKeyPem: string, id: string, claims: string): Promise<string> {
  let algorithm = "";
  try {
    algorithm = createPrivateKey(privateKeyPem).asymmetricKeyType === "ec" ? "ES256" : "RS256";
  } catch {
    throw unusable("the credential file holds no private key"); // the library's message could quote it
  }
  return createJwtSigner(create(SigningKeySchema, { privateKeyPem, algorithm, id })).sign(claims);
}

async function askForUser(file: File, { idToken }: Wanted, deps: SourceDeps): Promise<FetchedToken<string>> {
  const form = {
    grant_type: "refresh_token",
    client_id: textOf(file, "client_id"),
    client_secret: textOf(file, "client_secret"),
    refresh_token: textOf(file, "refresh_token"),
  };
  return askTokenUri(checkUrl(file["token_uri"] ?? TOKEN_URI), form, idToken, deps);
}

async function askTokenUri(
  url: string,
  form: Readonly<Record<string, string>>,
  idToken: boolean,
  { client, caller }: SourceDeps,
): Promise<FetchedToken<string>> {
  const headers = new HeaderList(["content-type", "application/x-www-form-urlencoded", "accept", "application/json"]);
  const answer = await client.send(
    { method: "POST", url, headers, body: new URLSearchParams(form).toString() },
    caller,
  );
  const who = "the token service of cloud C";
  return idToken ? ofJwt(checkToken(readObject(answer, who)["id_token"], who), who) : readBearer(answer, who);
}

async function impersonate(
  url: string,
  token: string,
  { idToken, audience }: Wanted,
  { client, caller }: SourceDeps,
): Promise<FetchedToken<string>> {
  const checked = checkUrl(url);
  const target = idToken ? checked.replace(/:generateAccessToken$/, ":generateIdToken") : checked;
  const body = JSON.stringify(idToken ? { audience, includeEmail: true } : { scope: [SCOPE], lifetime: "3600s" });
  const headers = new HeaderList(["content-type", "application/json", "authorization", `Bearer ${token}`]);
  const who = "the service of impersonation";
  const found = readObject(await client.send({ method: "POST", url: target, headers, body }, caller), who);
  if (idToken) return ofJwt(checkToken(found["token"], who), who);
  const end = Date.parse(String(found["expireTime"]));
  const fetchedAtMs = monotonicMs();
  const lifetimeMs = Number.isNaN(end) ? 0 : end - Date.now();
  return { value: checkToken(found["accessToken"], who), fetchedAtMs, expiresAtMs: fetchedAtMs + lifetimeMs };
}

/** Workload identity federation: the token of another issuer is exchanged. */
async function askForExternal(
  file: File,
  wanted: Wanted,
  deps: SourceDeps,
  isForeign: boolean,
): Promise<FetchedToken<string>> {
  if (wanted.idToken) throw unusable("external accounts have no ID tokens");
  const form = {
    grant_type: "urn:ietf:params:oauth:grant-type:token-exchange",
    audience: textOf(file, "audience"),
    scope: SCOPE,
    requested_token_type: "urn:ietf:params:oauth:token-type:access_token",
    subject_token: await readSubject(file["credential_source"], deps, isForeign),
    subject_token_type: textOf(file, "subject_token_type"),
  };
  const token = await askTokenUri(checkUrl(file["token_url"]), form, false, deps);
  const url = file["service_account_impersonation_url"];
  return typeof url === "string" ? impersonate(url, token.value, wanted, deps) : token;
}

/** @throws ProxyError for a program, and for what a Secret may not name */
async function readSubject(
  source: unknown,
  { client, environment, caller }: SourceDeps,
  isForeign: boolean,
): Promise<string> {
  if (!isRecord(source) || "executable" in source) throw unusable("the external account names no file or URL");
  const { file, url } = source;
  let text = "";
  if (typeof file === "string") {
    if (isForeign && !isListed(file, environment))
      throw unusable("GWPROXY_EXTERNAL_ACCOUNT_FILES does not list the file that the external account names");
    text = await readFile(file, "utf8").catch(() => {
      throw unusable(`${file} cannot be read`);
    });
  } else {
    if (isForeign || typeof url !== "string")
      throw unusable("an external account of a Secret may name a listed file only");
    const headers = new HeaderList(
      isRecord(source["headers"]) ? Object.entries(source["headers"]).flat().map(String) : [],
    );
    const answer = await client.send({ url: checkUrl(url), headers }, caller);
    // The page of an error would be sent on as a token.
    if (answer.status !== 200) throw unusable(`the URL of the external account answered with status ${answer.status}`);
    text = answer.body.toString();
  }
  const format = source["format"];
  if (!isRecord(format) || format["type"] !== "json") return text.trim();
  return checkToken(
    parseAnswer(Buffer.from(text))?.[String(format["subject_token_field_name"])],
    "the external account",
  );
}

function isListed(file: string, environment: Environment): boolean {
  const listed = (environment["GWPROXY_EXTERNAL_ACCOUNT_FILES"] ?? "").split(",").map((each) => each.trim());
  return normalize(file) === file && file.startsWith(SECRETS) && listed.includes(file);
}

/** @throws ProxyError credential_unavailable for plain text to another machine */
function checkUrl(text: unknown): string {
  const url = typeof text === "string" ? URL.parse(text) : null;
  const isSafe = url?.protocol === "https:" || (url?.protocol === "http:" && isLocalHost(url.hostname));
  if (url === null || !isSafe) throw unusable("a URL of the credential file is not https");
  return url.href;
}

function textOf(file: File, name: string): string {
  const value = file[name];
  if (typeof value === "string" && value !== "") return value;
  throw unusable(`the credential file has no ${name}`);
}

/** An ID token says itself when it ends. */
function ofJwt(token: string, who: string): FetchedToken<string> {
  const claims = parseAnswer(Buffer.from(checkToken(token, who).split(".")[1] ?? "", "base64url"));
  const end = claims?.["exp"];
  if (typeof end !== "number") throw unusable(`${who} gave a token without an end`);
  const fetchedAtMs = monotonicMs();
  return { value: token, fetchedAtMs, expiresAtMs: fetchedAtMs + end * 1000 - Date.now() };
}
