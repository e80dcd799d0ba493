/**
 * Parses a JSON Web Key Set (RFC 7517) into the keys that the data plane gets: public keys for signatures, and nothing
 * else. `../jwt-authentication.ts`, `remote-jwks.ts` and `src/runtime/remote-jwks.ts` use it.
 *
 * Private members never leave this file, and symmetric keys are never accepted. Keys for other purposes, which most
 * sets also hold, are left out.
 */
import { create } from "@bufbuild/protobuf";
import { JwtKeySchema, type JwtKey } from "../../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { isRecord } from "../../../lib/is-record.ts";
import { parseJsonObject } from "../../../lib/parse-json-object.ts";

const MAX_KEYS = 128;

/** Public members by `kty` (RFC 7518 §6, RFC 8037 §2), and the algorithms that such a key may name. */
const FAMILIES: Readonly<Record<string, { readonly members: readonly string[]; readonly algorithms: RegExp }>> = {
  RSA: { members: ["n", "e"], algorithms: /^[RP]S(?:256|384|512)$/ },
  EC: { members: ["crv", "x", "y"], algorithms: /^ES(?:256|384)$/ },
  OKP: { members: ["crv", "x"], algorithms: /^(?:EdDSA|Ed25519)$/ },
};
const CURVES: ReadonlySet<unknown> = new Set(["P-256", "P-384", "Ed25519", undefined]);

/** @returns the usable keys, at least one, or what is wrong with the set */
export function parseJwks(text: string): readonly JwtKey[] | string {
  const set = parseJsonObject(text);
  const keys = set?.["keys"];
  if (!Array.isArray(keys)) return "not a JSON Web Key Set: an object with a list keys";
  if (keys.length > MAX_KEYS) return `a JWKS may hold ${MAX_KEYS} keys at most`;
  const usable = keys.flatMap((key: unknown) => publicKey(key) ?? []);
  return usable.length > 0
    ? usable
    : "no key of the set can be used: a key needs a kid and must be RSA, P-256, P-384 or Ed25519, for signatures";
}

/** @returns undefined for a key that cannot verify signatures, or whose purpose, curve or algorithm is not supported */
function publicKey(value: unknown): JwtKey | undefined {
  const key = isRecord(value) ? value : {};
  const { kid, kty, alg, use, key_ops: operations } = key;
  const family = typeof kty === "string" && Object.hasOwn(FAMILIES, kty) ? FAMILIES[kty] : undefined;
  if (family === undefined || typeof kid !== "string" || kid === "") return undefined;
  if (!CURVES.has(key["crv"]) || (use !== undefined && use !== "sig")) return undefined;
  if (Array.isArray(operations) && !operations.includes("verify")) return undefined;
  if (alg !== undefined && (typeof alg !== "string" || !family.algorithms.test(alg))) return undefined;
  const members = family.members.map((name) => [name, key[name]] as const);
  if (!members.every(([, member]) => typeof member === "string" && member !== "")) return undefined;
  const jwkJson = JSON.stringify({ kty, ...Object.fromEntries(members) });
  return create(JwtKeySchema, { id: kid, algorithm: alg ?? "", jwkJson });
}
