/**
 * Signs requests with AWS Signature Version 4. Backends of that cloud use it: LLM providers, guards and agent runtimes.
 *
 * A signature covers method, path, query, some headers and the whole body, so signing is the last step before a request
 * leaves, and each attempt is signed anew. The derived key holds for one day, region and service and is kept. An HMAC
 * is computed as two one-shot hashes over blocks that are padded once (RFC 2104 §4): `createHmac` takes six times
 * longer for texts of this size.
 */
import { hash } from "node:crypto";
import type { HeaderList } from "../../../../lib/header-list.ts";
import { percentEncode } from "../../../../lib/percent-encode.ts";
import type { SigningScope, UnsignedRequest } from "../../../upstream/auth.ts";

export interface AwsCredentials {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  /** Empty for keys that do not expire. */
  readonly sessionToken: string;
}

const ALGORITHM = "AWS4-HMAC-SHA256";
/** Services of objects take paths as they are on the wire: a name may hold any bytes. */
const PLAIN_PATHS: ReadonlySet<string> = new Set(["s3", "s3express", "s3-object-lambda", "s3-outposts"]);
/** Services that get `x-amz-content-sha256`: runtimes of agents, and those that refuse a request without it. */
const WANT_DIGEST: ReadonlySet<string> = new Set([...PLAIN_PATHS, "aoss", "glacier", "bedrock-agentcore"]);
const BLOCK_BYTES = 64;
const DIGEST_BYTES = 32;

/**
 * Sets `authorization`, `x-amz-date`, for temporary credentials `x-amz-security-token`, and where the service wants it
 * `x-amz-content-sha256`. A client's own headers of these names are removed first, because they would contradict the
 * signature.
 */
export function signRequest(
  { method, path, headers, body }: UnsignedRequest,
  credentials: AwsCredentials,
  scope: SigningScope,
  nowMs: number,
): void {
  for (const name of ["authorization", "x-amz-date", "x-amz-security-token", "x-amz-content-sha256"])
    headers.remove(name);
  const time = amzDate(nowMs);
  headers.add("x-amz-date", time);
  if (credentials.sessionToken !== "") headers.add("x-amz-security-token", credentials.sessionToken);
  const digest = hash("sha256", body);
  if (WANT_DIGEST.has(scope.service)) headers.add("x-amz-content-sha256", digest);

  const mark = path.indexOf("?");
  const ownPath = mark < 0 ? path : path.slice(0, mark);
  const { names, lines } = signedHeaders(headers);
  const canonical = [
    method,
    PLAIN_PATHS.has(scope.service) ? ownPath : canonicalPath(ownPath),
    mark < 0 ? "" : canonicalQuery(path.slice(mark + 1)),
    lines,
    names,
    digest,
  ].join("\n");
  const day = time.slice(0, 8);
  const place = `${day}/${scope.region}/${scope.service}/aws4_request`;
  // Header values are latin1, one character per byte on the wire; everything else is ASCII.
  const text = `${ALGORITHM}\n${time}\n${place}\n${hash("sha256", Buffer.from(canonical, "latin1"))}`;
  const signature = signingKey(credentials, scope, day).sign(text);
  headers.add(
    "authorization",
    `${ALGORITHM} Credential=${credentials.accessKeyId}/${place}, SignedHeaders=${names}, Signature=${signature}`,
  );
}

/** Formats a time as `20150830T123600Z`; requests of one second share the text. */
function amzDate(ms: number): string {
  const second = Math.floor(ms / 1000);
  if (second !== lastSecond) {
    lastDate = `${new Date(ms).toISOString().slice(0, 19).replaceAll(/[-:]/g, "")}Z`;
    lastSecond = second;
  }
  return lastDate;
}

let lastSecond = NaN;
let lastDate = "";

/** Removes empty and relative segments, and encodes the rest once more than it is on the wire. */
function canonicalPath(path: string): string {
  const segments: string[] = [];
  for (const segment of path.split("/")) {
    if (segment === "..") segments.pop();
    else if (segment !== "" && segment !== ".") segments.push(percentEncode(segment));
  }
  const end = segments.length > 0 && path.endsWith("/") ? "/" : "";
  return `/${segments.join("/")}${end}`;
}

/** Sorts the parameters by their encoded names, then by their encoded values. */
function canonicalQuery(query: string): string {
  const pairs: [name: string, value: string][] = [];
  for (const pair of query.split("&")) {
    if (pair === "") continue;
    const equals = pair.indexOf("=");
    const name = equals < 0 ? pair : pair.slice(0, equals);
    pairs.push([percentEncode(decode(name)), equals < 0 ? "" : percentEncode(decode(pair.slice(equals + 1)))]);
  }
  return pairs
    .sort((a, b) => compareBytes(a[0], b[0]) || compareBytes(a[1], b[1]))
    .map(([name, value]) => `${name}=${value}`)
    .join("&");
}

/** Compares ASCII texts by their bytes. */
function compareBytes(a: string, b: string): number {
  if (a === b) return 0;
  return a < b ? -1 : 1;
}

function decode(text: string): string {
  if (!text.includes("%")) return text;
  try {
    return decodeURIComponent(text);
  } catch {
    // The signer and the service both take text that is no valid percent-encoding as it is.
    return text;
  }
}

/**
 * Tests whether a header is signed. Others stay free, so that hops behind this one can add and change them; the trace
 * header is rewritten by such hops too.
 */
function isSigned(name: string): boolean {
  if (name.startsWith("x-amz")) return (name[5] === "-" || name.startsWith("n-", 5)) && name !== "x-amzn-trace-id";
  return name === "host" || name === "content-type" || name === "date";
}

/** Trims a value, and makes one space of each run of white space. */
function collapsed(value: string): string {
  return /\s\s|[^\S ]|^\s|\s$/.test(value) ? value.trim().replaceAll(/\s+/g, " ") : value;
}

function signedHeaders({ raw }: HeaderList): { readonly names: string; readonly lines: string } {
  const values = new Map<string, string>();
  for (let at = 0; at < raw.length; at += 2) {
    // A header list alternates names and values.
    const name = (raw[at] as string).toLowerCase();
    if (!isSigned(name)) continue;
    const value = collapsed(raw[at + 1] as string);
    const before = values.get(name);
    values.set(name, before === undefined ? value : `${before},${value}`);
  }
  const names = [...values.keys()].sort(compareBytes);
  return { names: names.join(";"), lines: names.map((name) => `${name}:${values.get(name)}\n`).join("") };
}

/** Holds the inner and the outer block of an HMAC-SHA-256 key, padded once (RFC 2104 §2). */
class HmacKey {
  readonly #inner: Buffer = Buffer.alloc(BLOCK_BYTES, 0x36);
  /** Followed by the digest over the inner block. */
  readonly #outer: Buffer = Buffer.alloc(BLOCK_BYTES + DIGEST_BYTES, 0x5c);

  constructor(secret: Buffer) {
    const key = secret.length > BLOCK_BYTES ? hash("sha256", secret, "buffer") : secret;
    for (let at = 0; at < key.length; at++) {
      // Both blocks are longer than the key, so every index is inside.
      this.#inner[at] = 0x36 ^ (key[at] as number);
      this.#outer[at] = 0x5c ^ (key[at] as number);
    }
  }

  /** @param text ASCII */
  #digest(text: string): void {
    const block = Buffer.allocUnsafe(BLOCK_BYTES + text.length);
    this.#inner.copy(block);
    block.write(text, BLOCK_BYTES, "latin1");
    this.#outer.write(hash("sha256", block, "binary"), BLOCK_BYTES, "latin1");
  }

  /** @returns hexadecimal digits */
  sign(text: string): string {
    this.#digest(text);
    return hash("sha256", this.#outer);
  }

  derive(text: string): HmacKey {
    this.#digest(text);
    return new HmacKey(hash("sha256", this.#outer, "buffer"));
  }
}

interface DerivedKey {
  readonly day: string;
  readonly key: HmacKey;
}

/** Keys live as long as the credentials they were derived from, one for each service in each region. */
const derived = new WeakMap<AwsCredentials, Map<string, DerivedKey>>();

function signingKey(credentials: AwsCredentials, { region, service }: SigningScope, day: string): HmacKey {
  let keys = derived.get(credentials);
  if (keys === undefined) derived.set(credentials, (keys = new Map()));
  const scope = `${region}/${service}`;
  const kept = keys.get(scope);
  if (kept?.day === day) return kept.key;
  let key = new HmacKey(Buffer.from(`AWS4${credentials.secretAccessKey}`));
  for (const text of [day, region, service, "aws4_request"]) key = key.derive(text);
  keys.set(scope, { day, key });
  return key;
}
