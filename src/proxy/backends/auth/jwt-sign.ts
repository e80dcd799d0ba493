/**
 * The kind `jwtSign`: a token that the data plane signs itself. Its times are whole seconds, so all requests of one
 * second carry the same token, which is signed once.
 */
import { create } from "@bufbuild/protobuf";
import { CredentialSchema, type SignedToken } from "../../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import type { MaybePromise } from "../../exchange/exchange.ts";
import type { AuthKind } from "./auth-kind.ts";
import { createJwtSigner } from "./shared/jwt-signer.ts";
import { placeCredential } from "./shared/place-credential.ts";
import { refuseAll } from "./unresolved.ts";

/** Clocks of others may be behind. */
const BEHIND_SECONDS = 10;

export const jwtSign: AuthKind<"jwtSign"> = {
  compile(spec) {
    const tokenNow = compileToken(spec);
    if (tokenNow === undefined) return refuseAll("the signing key cannot be used");
    const { location } = spec;
    const place = (value: string, headers: Parameters<typeof placeCredential>[1], path: string): string =>
      placeCredential(
        create(CredentialSchema, location === undefined ? { value } : { value, location }),
        headers,
        path,
      );
    return {
      place(_call, headers, path) {
        const token = tokenNow();
        return typeof token === "string"
          ? place(token, headers, path)
          : token.then((ready) => place(ready, headers, path));
      },
    };
  },
};

/** @returns undefined when the key cannot be used */
function compileToken({ key, claimsJson, ttlSeconds }: SignedToken): (() => MaybePromise<string>) | undefined {
  const signer = key === undefined ? undefined : signerOf(key);
  if (signer === undefined) return undefined;
  const claims = claimsJson === "" ? "{" : `${claimsJson.slice(0, -1)},`;
  let second = 0;
  let token: MaybePromise<string> = "";
  const remember = async (signed: Promise<string>): Promise<void> => {
    try {
      const text = await signed;
      if (token === signed) token = text;
    } catch {
      // The requests that wait get the error; the next one tries again.
      if (token === signed) second = 0;
    }
  };
  return () => {
    const now = Math.floor(Date.now() / 1000);
    if (now === second) return token;
    second = now;
    const signed = signer.sign(`${claims}"iat":${now - BEHIND_SECONDS},"exp":${now + ttlSeconds}}`);
    token = signed;
    void remember(signed);
    return signed;
  };
}

function signerOf(key: Parameters<typeof createJwtSigner>[0]): ReturnType<typeof createJwtSigner> | undefined {
  try {
    return createJwtSigner(key);
  } catch {
    return undefined; // the message of the library could quote the key
  }
}
