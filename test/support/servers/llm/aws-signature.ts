/**
 * Recomputes AWS Signature Version 4 of a request that arrived, with the usual functions and from the bytes on the wire.
 * Strict servers of that cloud use it.
 */
import { createHash, createHmac } from "node:crypto";

export interface SignedRequest {
  readonly method: string;
  readonly url: string;
  readonly rawHeaders: readonly string[];
  readonly body: Buffer;
}

export interface ExpectedKeys {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  readonly sessionToken?: string;
  readonly region: string;
  readonly service: string;
}

const FORM =
  /^AWS4-HMAC-SHA256 Credential=([^/]+)\/(\d{8})\/([^/]+)\/([^/]+)\/aws4_request, ?SignedHeaders=([^,]+), ?Signature=([0-9a-f]{64})$/;
/** A signature is good for five minutes. */
const MAX_SKEW_MS = 300_000;

/** Services that want the digest of the body in a header, and encode the path once. */
const OBJECT_SERVICES = ["s3"];

/** @param nowMs time of the service @returns what is wrong, undefined for a good signature */
export function findSignatureFault(
  request: SignedRequest,
  keys: ExpectedKeys,
  nowMs: number = Date.now(),
): string | undefined {
  const headers = headersOf(request.rawHeaders);
  const parts = FORM.exec(headers.get("authorization") ?? "");
  if (parts === null) return "no signature";
  const [, keyId, day = "", region = "", service = "", names = "", signature] = parts;
  if (keyId !== keys.accessKeyId) return `unknown key ${keyId}`;
  if (region !== keys.region || service !== keys.service) return `signed for ${service} in ${region}`;
  if (headers.get("x-amz-security-token") !== keys.sessionToken) return "wrong session token";
  const time = headers.get("x-amz-date") ?? "";
  const at = Date.parse(time.replace(/^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/, "$1-$2-$3T$4:$5:$6Z"));
  if (!time.startsWith(day) || !(Math.abs(nowMs - at) < MAX_SKEW_MS)) return `signature expired: ${time}`;
  const unsigned = [...headers.keys()].filter((name) => mustBeSigned(name) && !names.split(";").includes(name));
  if (unsigned.length > 0) return `not signed: ${unsigned.join(", ")}`;
  // Object storage needs the digest of the body; other services work it out, and the SDK may send it to them as well.
  const digest = headers.get("x-amz-content-sha256");
  const isObject = OBJECT_SERVICES.includes(service);
  if ((isObject || digest !== undefined) && digest !== sha256(request.body))
    return isObject ? "wrong digest" : "the signature does not match";
  const scope = [day, region, service, "aws4_request"];
  const text = [
    "AWS4-HMAC-SHA256",
    time,
    scope.join("/"),
    sha256(canonicalOf(request, headers, { names, service })),
  ].join("\n");
  const key = scope.reduce<string | Buffer>(hmac, `AWS4${keys.secretAccessKey}`);
  return hmac(key, text).toString("hex") === signature ? undefined : "the signature does not match";
}

function mustBeSigned(name: string): boolean {
  return name === "host" || (name.startsWith("x-amz") && name !== "x-amzn-trace-id");
}

function canonicalOf(
  { method, url, body }: SignedRequest,
  headers: ReadonlyMap<string, string>,
  { names, service }: { readonly names: string; readonly service: string },
): string {
  const [path = "", query = ""] = url.split("?", 2);
  const lines = names.split(";").map((name) => `${name}:${(headers.get(name) ?? "").replaceAll(/\s+/g, " ").trim()}\n`);
  const pairs = query
    .split("&")
    .filter((pair) => pair !== "")
    .map((pair) => (pair.includes("=") ? pair : `${pair}=`));
  // The service encodes each segment of the path once more.
  const segments = path.split("/").map((segment) => encodeURIComponent(segment).replaceAll(/[!'()*]/g, escaped));
  const canonicalPath = OBJECT_SERVICES.includes(service) ? path : segments.join("/");
  return [method, canonicalPath, pairs.sort().join("&"), lines.join(""), names, sha256(body)].join("\n");
}

function escaped(character: string): string {
  return `%${character.charCodeAt(0).toString(16).toUpperCase()}`;
}

function headersOf(raw: readonly string[]): ReadonlyMap<string, string> {
  const headers = new Map<string, string>();
  for (let at = 0; at < raw.length; at += 2) {
    const name = String(raw[at]).toLowerCase();
    const before = headers.get(name);
    headers.set(name, before === undefined ? String(raw[at + 1]) : `${before},${raw[at + 1]}`);
  }
  return headers;
}

function sha256(data: string | Buffer): string {
  return createHash("sha256")
    .update(typeof data === "string" ? Buffer.from(data, "latin1") : data)
    .digest("hex");
}

function hmac(key: string | Buffer, text: string): Buffer {
  return createHmac("sha256", key).update(text).digest();
}
