/**
 * Who is calling, by an API key. Only the SHA-256 of a key is known here; the presented key is hashed and looked up,
 * taken out of the request, and its entry becomes the root "apiKey" of expressions.
 */
import { createHash } from "node:crypto";

import {
  type ApiKey,
  type ApiKeyAuthentication,
  AuthenticationMode,
} from "../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { Secret } from "../../cel/values.ts";
import { ConfigError } from "../../lib/errors.ts";
import { ProxyError } from "../errors.ts";
import { compileLocation } from "./credential-location.ts";
import type { Policy } from "./policy.ts";

type Metadata = Readonly<Record<string, unknown>>;

export const apiKeyAuthentication: Policy<ApiKeyAuthentication> = {
  name: "api-key-authentication",
  compile({ mode, keys, location }, deps) {
    const metadataByHash = new Map(keys.map((key) => [Buffer.from(key.sha256).toString("hex"), metadataOf(key)]));
    const place = compileLocation(location, deps);
    const missingPasses = mode === AuthenticationMode.OPTIONAL || mode === AuthenticationMode.PERMISSIVE;
    const invalidPasses = mode === AuthenticationMode.PERMISSIVE;

    return function apiKeyAuthentication(exchange, next) {
      const key = place.read(exchange);
      if (key === undefined) {
        if (missingPasses) return next();
        throw new ProxyError("api_key_missing");
      }
      const metadata = metadataByHash.get(createHash("sha256").update(key).digest("hex"));
      if (metadata === undefined) {
        if (invalidPasses) return next();
        throw new ProxyError("api_key_invalid");
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
