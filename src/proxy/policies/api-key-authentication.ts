/**
 * Authenticates the client by an API key. The configuration holds only SHA-256 hashes of keys; the presented key is
 * hashed, looked up and removed from the request. The metadata of its entry become the root "apiKey" of expressions.
 */
import { hash } from "node:crypto";

import {
  type ApiKey,
  type ApiKeyAuthentication,
  AuthenticationMode,
} from "../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { Secret } from "../../cel/values.ts";
import { ConfigError } from "../../lib/errors.ts";
import { BEARER_INVALID, BEARER_MISSING, sendChallenge } from "./shared/challenge.ts";
import { AMBIGUOUS, compileLocation } from "./shared/credential-location.ts";
import type { Policy } from "./policy.ts";

type Metadata = Readonly<Record<string, unknown>>;

export const apiKeyAuthentication: Policy<ApiKeyAuthentication> = {
  compile({ mode, keys, location }, deps) {
    const metadataByHash = new Map(keys.map((key) => [Buffer.from(key.sha256).toString("hex"), metadataOf(key)]));
    const place = compileLocation(location, deps);
    const missingPasses = mode === AuthenticationMode.OPTIONAL || mode === AuthenticationMode.PERMISSIVE;
    const invalidPasses = mode === AuthenticationMode.PERMISSIVE;

    return function apiKeyAuthentication(exchange, next) {
      const key = place.read(exchange);
      if (key === undefined) {
        if (missingPasses) return next();
        return sendChallenge(exchange, place, BEARER_MISSING, { code: "api_key_missing" });
      }
      // The look-up compares hashes instead of keys, so its duration does not tell how much of a guessed key is right.
      const metadata = key === AMBIGUOUS ? undefined : metadataByHash.get(hash("sha256", key, "hex"));
      if (key === AMBIGUOUS || metadata === undefined) {
        if (invalidPasses) return next();
        return sendChallenge(exchange, place, BEARER_INVALID, { code: "api_key_invalid" });
      }
      place.strip(exchange);
      exchange.setRoot("apiKey", { ...metadata, key: new Secret(key) });
      return next();
    };
  },
};

/** @throws ConfigError when the metadata are not a JSON object */
function metadataOf({ metadataJson }: ApiKey): Metadata {
  if (metadataJson === "") return {};
  let value: unknown;
  try {
    value = JSON.parse(metadataJson);
  } catch (cause) {
    throw new ConfigError("the metadata of an API key are not JSON", { cause });
  }
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw new ConfigError("the metadata of an API key are not a JSON object");
  }
  return { ...value };
}
