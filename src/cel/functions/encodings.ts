/** Encodings and digests of strings and bytes: base64, JSON, forms, URLs, hashes, the payload of a JWT. */
import { createHash } from "node:crypto";

import { percentEncode } from "../../lib/percent-encode.ts";
import type { Run } from "../budget.ts";
import type { CelFunction, Declaration } from "../function.ts";
import { COST_LIMIT, Failure, INVALID_ARGUMENT, NO_OVERLOAD } from "../errors.ts";
import { jsonText, parseJson } from "../json.ts";
import { scalarText } from "../text.ts";
import { adopt, isMap, mapGet, mapKeys } from "../values.ts";
import { utf8 } from "./standard.ts";

function bytesOf(run: Run, value: unknown): Buffer | Failure {
  if (typeof value !== "string" && !(value instanceof Uint8Array)) return NO_OVERLOAD;
  if (run.spendLength(value.length)) return COST_LIMIT;
  return typeof value === "string" ? Buffer.from(value) : Buffer.from(value.buffer, value.byteOffset, value.byteLength);
}

function textOf(run: Run, value: unknown): string | Failure {
  if (typeof value === "string") return run.spendLength(value.length) ? COST_LIMIT : value;
  return value instanceof Uint8Array ? utf8(run, value) : NO_OVERLOAD;
}

const base64Encode: CelFunction = (run, value) => {
  const bytes = bytesOf(run, value);
  return bytes instanceof Failure ? bytes : bytes.toString("base64");
};

const base64Decode: CelFunction = (run, value) => {
  const text = textOf(run, value);
  if (text instanceof Failure) return text;
  const plain = text.replace(/={1,2}$/, "");
  if (!/^[A-Za-z0-9+/]*$/.test(plain) || plain.length % 4 === 1) return INVALID_ARGUMENT;
  return new Uint8Array(Buffer.from(plain, "base64"));
};

const HASH_STEPS = 10;
const HASHED_PER_STEP = 32;
/** Characters of a query or form that are parsed and printed per step. */
const FORM_UNITS_PER_STEP = 4;

function digest(algorithm: "md5" | "sha1" | "sha256"): CelFunction {
  return (run, value) => {
    const bytes = bytesOf(run, value);
    if (bytes instanceof Failure) return bytes;
    return run.spend(HASH_STEPS + bytes.length / HASHED_PER_STEP)
      ? COST_LIMIT
      : createHash(algorithm).update(bytes).digest("hex");
  };
}

const json: CelFunction = (run, value) => {
  const text = textOf(run, value);
  return text instanceof Failure ? text : parseJson(run, text);
};

const toJson: CelFunction = (run, value) => jsonText(run, value);

/** Reads the claims of a JWT without verifying its signature. Use it for logs and routing, never for authorization. */
const unvalidatedJwtPayload: CelFunction = (run, value) => {
  const text = textOf(run, value);
  if (text instanceof Failure) return text;
  const parts = text.split(".");
  if (parts.length !== 3) return INVALID_ARGUMENT;
  const payload = utf8(run, Buffer.from(parts[1] as string, "base64url"));
  return payload instanceof Failure ? payload : parseJson(run, payload);
};

const urlEncode: CelFunction = (run, value) => {
  const text = textOf(run, value);
  return text instanceof Failure ? text : percentEncode(text);
};

const urlDecode: CelFunction = (run, value) => {
  const text = textOf(run, value);
  if (text instanceof Failure) return text;
  try {
    return decodeURIComponent(text);
  } catch {
    return INVALID_ARGUMENT;
  }
};

/** Parses a form: one value as a string, several of the same name as a list. */
const formDecode: CelFunction = (run, value) => {
  const text = textOf(run, value);
  if (text instanceof Failure) return text;
  if (run.spend(text.length / FORM_UNITS_PER_STEP)) return COST_LIMIT;
  const result = new Map<string, string | string[]>();
  for (const [name, item] of new URLSearchParams(text)) {
    const known = result.get(name);
    if (known === undefined) result.set(name, item);
    else if (typeof known === "string") result.set(name, [known, item]);
    else known.push(item);
  }
  return result;
};

const formEncode: CelFunction = (run, map) => {
  if (!isMap(map)) return NO_OVERLOAD;
  const form = new URLSearchParams();
  for (const key of mapKeys(map, run)) {
    const name = scalarText(key);
    const value = mapGet(map, key, run);
    if (name === undefined) return NO_OVERLOAD;
    for (const item of Array.isArray(value) ? value : [value]) {
      if (item === null || item === undefined) continue;
      const text = scalarText(adopt(item));
      if (text === undefined) return NO_OVERLOAD;
      if (run.spend(1 + text.length / FORM_UNITS_PER_STEP)) return COST_LIMIT;
      form.append(name, text);
    }
  }
  form.sort();
  return form.toString();
};

/** `request.uri.query("k")`: returns every value of the parameter, and fails with a missing key when there is none. */
const query: CelFunction = (run, uri, name) => {
  if (typeof uri !== "string" || typeof name !== "string") return NO_OVERLOAD;
  if (run.spend(uri.length / FORM_UNITS_PER_STEP)) return COST_LIMIT;
  const values = new URLSearchParams(splitQuery(uri).query).getAll(name);
  return values.length === 0 ? new Failure("no_such_key", `no such query parameter: ${name}`) : values;
};

function changeQuery(change: (query: URLSearchParams, name: string, value: string) => void): CelFunction {
  return (run, uri, name, value) => {
    if (typeof uri !== "string" || typeof name !== "string" || typeof value !== "string") return NO_OVERLOAD;
    if (run.spend(uri.length / FORM_UNITS_PER_STEP)) return COST_LIMIT;
    const parts = splitQuery(uri);
    const parameters = new URLSearchParams(parts.query);
    change(parameters, name, value);
    return `${parts.path}?${parameters.toString()}`;
  };
}

function splitQuery(uri: string): { path: string; query: string } {
  const at = uri.indexOf("?");
  return at < 0 ? { path: uri, query: "" } : { path: uri.slice(0, at), query: uri.slice(at + 1) };
}

const DATA = "string | bytes";

export const ENCODING_FUNCTIONS: readonly Declaration[] = [
  [`base64.encode(${DATA}): string`, base64Encode],
  [`base64.decode(${DATA}): bytes`, base64Decode],
  [`base64Encode(${DATA}): string`, base64Encode],
  [`base64Decode(${DATA}): bytes`, base64Decode],
  [`md5.encode(${DATA}): string`, digest("md5")],
  [`sha1.encode(${DATA}): string`, digest("sha1")],
  [`sha256.encode(${DATA}): string`, digest("sha256")],
  [`json(${DATA}): dyn`, json],
  ["toJson(A): string", toJson],
  ["to_json(A): string", toJson],
  [`unvalidatedJwtPayload(${DATA}): dyn`, unvalidatedJwtPayload],
  [`url.encode(${DATA}): string`, urlEncode],
  [`url.decode(${DATA}): string`, urlDecode],
  [`form.decode(${DATA}): map<string, dyn>`, formDecode],
  ["form.encode(map<A, B>): string", formEncode],
  [".query(string, string): list<string>", query],
  [".addQuery(string, string, string): string", changeQuery((form, name, value) => form.append(name, value))],
  [".setQuery(string, string, string): string", changeQuery((form, name, value) => form.set(name, value))],
];
