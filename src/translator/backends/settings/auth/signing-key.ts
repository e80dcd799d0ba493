/** Translates the private keys that the data plane signs tokens with. A key that cannot sign is found here already. */
import { createPrivateKey, type KeyObject } from "node:crypto";
import { create } from "@bufbuild/protobuf";
import type { LocalSecretKeyRef, LocalSecretRef } from "../../../../../generated/types/common.ts";
import type { JwtSigningAlg } from "../../../../../generated/types/backend-auth.ts";
import { SigningKeySchema, type SigningKey } from "../../../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import type { SecretReader } from "../../../references/secrets.ts";

const DEFAULT_ENTRY = "signingKey";
/** Curve by algorithm; an algorithm without one needs an RSA key. */
const CURVES: Readonly<Partial<Record<JwtSigningAlg, string>>> = { ES256: "prime256v1", ES384: "secp384r1" };
const MIN_RSA_BITS = 2048;

/** @returns the key, or what is wrong with it, which never quotes it */
export function readSigningKey(
  { key: entry, ...ref }: LocalSecretKeyRef | (LocalSecretRef & { readonly key?: undefined }),
  { alg, kid = "" }: { readonly alg: JwtSigningAlg | undefined; readonly kid: string | undefined },
  secrets: SecretReader,
): SigningKey | { readonly error: string } {
  const name = entry ?? DEFAULT_ENTRY;
  const found = secrets.entry(ref, name);
  if ("error" in found) return found;
  const algorithm = alg ?? "RS256";
  const where = `entry ${name} of Secret ${ref.name}`;
  const key = parseKey(found.value);
  if (key === undefined) return { error: `${where} is not an unencrypted private key in PEM form` };
  if (!fits(key, algorithm)) return { error: `the key in ${where} cannot sign with ${algorithm}` };
  return create(SigningKeySchema, { privateKeyPem: found.value, algorithm, id: kid });
}

function parseKey(pem: string): KeyObject | undefined {
  try {
    return createPrivateKey(pem);
  } catch {
    return undefined; // the message of the library could quote the text
  }
}

function fits({ asymmetricKeyType, asymmetricKeyDetails = {} }: KeyObject, algorithm: JwtSigningAlg): boolean {
  const curve = CURVES[algorithm];
  if (curve !== undefined) return asymmetricKeyType === "ec" && asymmetricKeyDetails.namedCurve === curve;
  return asymmetricKeyType === "rsa" && (asymmetricKeyDetails.modulusLength ?? 0) >= MIN_RSA_BITS;
}
