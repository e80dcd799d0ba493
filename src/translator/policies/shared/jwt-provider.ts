/** Translates an issuer of tokens with its public keys, for `traffic.jwtAuthentication` and `mcp.authentication`. */
import { create } from "@bufbuild/protobuf";
import type { JwtProvider as ApiProvider } from "../../../../generated/types/traffic-authentication.ts";
import {
  JwtProviderSchema,
  type JwtKey,
  type JwtProvider,
} from "../../../../generated/proto/gwproxy/config/v1/ir_pb.ts";

const DEFAULT_REQUIRED = ["exp"];

/** @param keys the keys of the issuer; without any, nothing could verify its tokens, and the provider must not be sent */
export function translateJwtProvider(
  { issuer, audiences = [], validation }: Omit<ApiProvider, "jwks">,
  keys: readonly JwtKey[],
): JwtProvider {
  return create(JwtProviderSchema, {
    issuer,
    audiences: [...audiences],
    keys: [...keys],
    requiredClaims: [...(validation?.requiredClaims ?? DEFAULT_REQUIRED)],
  });
}
