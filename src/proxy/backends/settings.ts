/**
 * Merges the settings for calls to a backend: for each block (tls, tcp, http, …) the most specific level that sets it
 * supplies all of it. The blocks `ai` and `mcp` are merged one level deeper, by their fields, and of the rules of
 * `authorization` and `mcp.authorization` none is lost. The registry calls it for each backend and each place where one
 * is used.
 */
import { create } from "@bufbuild/protobuf";
import {
  AiPolicySchema,
  AuthorizationSchema,
  BackendSettingsSchema,
  McpPolicySchema,
  type AiPolicy,
  type Authorization,
  type BackendSettings,
  type BackendTls,
  type ClientCertificate,
  type McpPolicy,
} from "../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import type { CompiledPolicy } from "../policies/policy-set.ts";
import type { IdentitySource } from "../spiffe/workload-api.ts";
import { checkTls } from "../upstream/dial/tls.ts";

// Each field of the message is a block with that name.
const BLOCKS = BackendSettingsSchema.fields.map(
  ({ localName }) => localName as Exclude<keyof BackendSettings, `$${string}`>,
);

const AI_FIELDS = AiPolicySchema.fields.map(({ localName }) => localName as Exclude<keyof AiPolicy, `$${string}`>);

const MCP_FIELDS = McpPolicySchema.fields.map(({ localName }) => localName as Exclude<keyof McpPolicy, `$${string}`>);

/** Returns the names of what `mergeSettings` merges by itself: blocks, and fields of `ai` and `mcp`. */
export function settingNames(settings: BackendSettings | undefined): string[] {
  if (settings === undefined) return [];
  const { ai, mcp } = settings;
  return BLOCKS.flatMap((block): string[] => {
    if (settings[block] === undefined) return [];
    if (block === "ai") return AI_FIELDS.filter((name) => !isEmpty(ai?.[name])).map((name) => `ai.${name}`);
    if (block === "mcp") return MCP_FIELDS.filter((name) => !isEmpty(mcp?.[name])).map((name) => `mcp.${name}`);
    return [block];
  });
}

/** Names of settings of which the rules of all levels count. */
export const COLLECTED_SETTINGS: ReadonlySet<string> = new Set(["authorization", "mcp.authorization"]);

/** @param levels from the least to the most specific; the last one that sets a block supplies all of it */
export function mergeSettings(levels: Iterable<BackendSettings | undefined>): BackendSettings {
  const merged = create(BackendSettingsSchema);
  for (const level of levels) {
    if (level === undefined) continue;
    const ai = mergeAi(merged.ai, level.ai);
    const mcp = mergeMcp(merged.mcp, level.mcp);
    const authorization = poolRules(merged.authorization, level.authorization);
    for (const name of BLOCKS) if (level[name] !== undefined) Object.assign(merged, { [name]: level[name] });
    if (ai !== undefined) merged.ai = ai;
    if (mcp !== undefined) merged.mcp = mcp;
    if (authorization !== undefined) merged.authorization = authorization;
  }
  return merged;
}

/** Pools the rules of two levels, so that a narrow one can never erase a denial of a broad one. */
function poolRules(general: Authorization | undefined, specific: Authorization | undefined): Authorization | undefined {
  if (general === undefined || specific === undefined) return specific ?? general;
  return create(AuthorizationSchema, { rules: [...general.rules, ...specific.rules] });
}

/** Merges two `ai` blocks: each field is that of the more specific block, unless it is unset or empty there. */
function mergeAi(general: AiPolicy | undefined, specific: AiPolicy | undefined): AiPolicy | undefined {
  if (general === undefined || specific === undefined) return specific ?? general;
  const merged = { ...general };
  for (const name of AI_FIELDS) if (!isEmpty(specific[name])) Object.assign(merged, { [name]: specific[name] });
  return merged;
}

/**
 * Merges two `mcp` blocks: authentication and guardrails are those of the more specific block that has them. Rules of
 * authorization are collected, so that a narrow rule can never erase a broad deny rule.
 */
function mergeMcp(general: McpPolicy | undefined, specific: McpPolicy | undefined): McpPolicy | undefined {
  if (general === undefined || specific === undefined) return specific ?? general;
  const authorization = poolRules(general.authorization, specific.authorization);
  const authentication = specific.authentication ?? general.authentication;
  return create(McpPolicySchema, {
    ...(authorization === undefined ? {} : { authorization }),
    ...(authentication === undefined ? {} : { authentication }),
    guardrails: specific.guardrails.length === 0 ? general.guardrails : specific.guardrails,
  });
}

/** Decides whether a field is unset: no message, an empty list or an empty map. */
function isEmpty(value: AiPolicy[(typeof AI_FIELDS)[number]] | McpPolicy[(typeof MCP_FIELDS)[number]]): boolean {
  if (value === undefined) return true;
  // Messages have a type name; maps are plain objects.
  return Array.isArray(value) ? value.length === 0 : !("$typeName" in value) && Object.keys(value).length === 0;
}

const certified = new WeakMap<BackendTls, WeakMap<ClientCertificate, BackendTls>>();

/**
 * Adds the client certificate to the TLS settings that lack one. Equal inputs give the same object, which pools rely
 * on.
 */
export function withClientCertificate(settings: BackendSettings): BackendSettings {
  const { clientCertificate, tls } = settings;
  if (clientCertificate === undefined || tls === undefined || tls.certificatePem !== "" || tls.spiffe) return settings;
  let made = certified.get(tls);
  if (made === undefined) certified.set(tls, (made = new WeakMap()));
  let complete = made.get(clientCertificate);
  if (complete === undefined) {
    const { certificatePem, privateKeyPem } = clientCertificate;
    made.set(clientCertificate, (complete = { ...tls, certificatePem, privateKeyPem }));
  }
  return { ...settings, tls: complete };
}

/** Merges the policies of one level: the oldest policy that sets a block wins. @param policies oldest first */
export function settingsOfLevel(policies: readonly CompiledPolicy[]): BackendSettings {
  return mergeSettings(policies.map(({ backend }) => backend).toReversed());
}

/**
 * Checks the TLS settings of a backend. It leaves out the client certificate of a Gateway: a bad one must fail only the
 * connections that show it, and not the backend.
 * @throws ConfigError when certificates or groups cannot be used
 */
export function checkSettings(settings: BackendSettings | undefined, identities: IdentitySource): void {
  if (settings?.tls === undefined) return;
  checkTls(settings.tls);
  // Start watching the Workload API now, long before a connection needs the identity.
  if (settings.tls.spiffe) identities.current();
}
