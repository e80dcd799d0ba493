/**
 * Translates `traffic.apiKeyAuthentication`: API keys from Secrets, or their hashes from ConfigMaps. Only hashes reach
 * the data plane. An invalid entry is reported and skipped. Without any valid key the unit is still sent, so that mode
 * Strict rejects every request.
 */
import { hash } from "node:crypto";
import { create } from "@bufbuild/protobuf";
import type { ApiKeyAuthentication as ApiBlock } from "../../../generated/types/traffic-authentication.ts";
import {
  ApiKeyAuthenticationSchema,
  ApiKeySchema,
  type ApiKey,
} from "../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { parseJsonObject } from "../../lib/parse-json-object.ts";
import type { NamedEntries } from "../references/secrets.ts";
import { AUTHENTICATION_MODES, credentialLocation } from "./shared/authentication.ts";
import type { UnitContext, UnitTranslator } from "./shared/unit.ts";

const FIELD = "apiKeyAuthentication";

export const apiKeyAuthentication: UnitTranslator = {
  translate({ apiKeyAuthentication: block }, context) {
    if (block === undefined) return undefined;
    const keys = sourcesOf(block, context).flatMap((source) => keysOf(source, context));
    const value = create(ApiKeyAuthenticationSchema, {
      mode: AUTHENTICATION_MODES[block.mode ?? "Strict"],
      keys,
      location: credentialLocation(block.location, `${FIELD}.location`, "Bearer", context),
    });
    return { case: "apiKeyAuthentication", value };
  },
};

interface KeySource extends NamedEntries {
  readonly kind: "Secret" | "ConfigMap";
  readonly field: string;
}

function sourcesOf(block: ApiBlock, context: UnitContext): KeySource[] {
  const { secretRef, secretSelector, configMapSelector } = block;
  if (secretRef !== undefined) {
    const field = `${FIELD}.secretRef`;
    const entries = context.secrets.secret(secretRef);
    if (typeof entries !== "string") return [{ kind: "Secret", field, name: secretRef.name, entries }];
    context.report(field, entries);
    return [];
  }
  const kind = secretSelector === undefined ? "ConfigMap" : "Secret";
  const field = `${FIELD}.${kind === "Secret" ? "secretSelector" : "configMapSelector"}`;
  const labels = (secretSelector ?? configMapSelector)?.matchLabels ?? {};
  const found = kind === "Secret" ? context.secrets.secretsWith(labels) : context.secrets.configMapsWith(labels);
  if (found.length === 0) context.report(field, `no ${kind} matches`);
  return found.map((source) => ({ kind, field, ...source }));
}

function keysOf({ kind, field, name, entries }: KeySource, context: UnitContext): ApiKey[] {
  return [...entries].flatMap(([entry, text]) => {
    const key = parseEntry(text ?? "", kind === "Secret");
    if (typeof key !== "string") return [key];
    context.report(field, `${kind} ${name}, entry ${entry}: ${key}; the entry is skipped`);
    return [];
  });
}

/** @returns the key, or what is wrong with the entry, without quoting any of it */
function parseEntry(text: string, allowsRaw: boolean): ApiKey | string {
  if (text === "") return "no text";
  if (!text.startsWith("{")) {
    return allowsRaw
      ? create(ApiKeySchema, { sha256: hash("sha256", text, "buffer") })
      : "only keyHash may stand in a ConfigMap";
  }
  const fields = parseJsonObject(text);
  if (fields === undefined) return "not a JSON object";
  const { key, keyHash, metadata } = fields;
  if ((key === undefined) === (keyHash === undefined)) return "exactly one of key and keyHash is required";
  if (metadata !== undefined && (typeof metadata !== "object" || metadata === null || Array.isArray(metadata)))
    return "metadata must be an object";
  const metadataJson = metadata === undefined ? "" : JSON.stringify(metadata);
  if (key !== undefined) {
    if (!allowsRaw) return "only keyHash may stand in a ConfigMap";
    if (typeof key !== "string" || key === "") return "key must be text";
    return create(ApiKeySchema, { sha256: hash("sha256", key, "buffer"), metadataJson });
  }
  const digest =
    typeof keyHash === "string" && /^sha256:[0-9a-fA-F]{64}$/.test(keyHash)
      ? Buffer.from(keyHash.slice(7), "hex")
      : undefined;
  return digest === undefined
    ? "keyHash must be sha256: and 64 hexadecimal digits"
    : create(ApiKeySchema, { sha256: digest, metadataJson });
}
