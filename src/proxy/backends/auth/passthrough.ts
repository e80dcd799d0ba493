/**
 * The kind `passthrough`: puts back the token that a JWT policy verified and took away, from wherever it came. Nothing
 * else is ever put back, and a call that the gateway makes on its own has no token.
 */
import { create } from "@bufbuild/protobuf";
import { CredentialSchema } from "../../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import type { AuthKind } from "./auth-kind.ts";
import { placeCredential } from "./shared/place-credential.ts";
import { verifiedToken } from "./shared/verified-token.ts";

export const passthrough: AuthKind<"passthrough"> = {
  compile: ({ location }) => ({
    place({ caller }, headers, path) {
      const value = verifiedToken(caller);
      if (value === undefined) return path;
      return placeCredential(
        create(CredentialSchema, location === undefined ? { value } : { value, location }),
        headers,
        path,
      );
    },
  }),
};
