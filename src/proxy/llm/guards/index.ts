/** THE table of prompt guards: one row per kind. run.ts runs what is compiled here. */
import {
  GuardAction,
  GuardScope as ScopeValue,
  type Guard as GuardNode,
} from "../../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { ConfigError } from "../../../lib/errors.ts";
import type { GuardScope } from "../formats/guarded-text.ts";
import { compileBedrockGuardrails } from "./bedrock-guardrails.ts";
import type { Check, Guard, GuardDeps } from "./guard.ts";
import { compileModelArmor } from "./model-armor.ts";
import { compileModeration } from "./moderation.ts";
import { compileRegex } from "./regex/regex.ts";
import { compileWebhook } from "./webhook.ts";

type Kind = NonNullable<GuardNode["kind"]["case"]>;
type Block<K extends Kind> = Extract<GuardNode["kind"], { readonly case: K }>["value"];
type Compile<K extends Kind> = (block: Block<K>, deps: GuardDeps, action: GuardAction) => Check;

const KINDS: { readonly [K in Kind]: Compile<K> } = {
  regex: compileRegex,
  webhook: compileWebhook,
  moderation: compileModeration,
  guardrailsA: compileBedrockGuardrails,
  guardrailsB: compileModelArmor,
};

const SCOPES: ReadonlyMap<ScopeValue, GuardScope> = new Map([
  [ScopeValue.SYSTEM_PROMPT, "SystemPrompt"],
  [ScopeValue.MESSAGES, "Messages"],
  [ScopeValue.TOOL_OUTPUT, "ToolOutput"],
  [ScopeValue.TOOL_INPUT, "ToolInput"],
]);

/** @throws ConfigError for a kind that this version does not know: what it protects must not be served */
export function compileGuard(node: GuardNode, deps: GuardDeps): Guard {
  const { kind, action, response } = node;
  if (kind.case === undefined || response === undefined) throw new ConfigError("a prompt guard of an unknown kind");
  // Each row compiles the block of its own kind.
  const check = (KINDS[kind.case] as Compile<Kind>)(kind.value, deps, action);
  return {
    kind: kind.case,
    scopes: new Set(node.scope.map(scopeOf)),
    isAudit: action === GuardAction.AUDIT,
    failOpen: node.failOpen,
    response,
    check,
  };
}

function scopeOf(value: ScopeValue): GuardScope {
  const scope = SCOPES.get(value);
  if (scope === undefined) throw new ConfigError("a prompt guard with an unknown scope");
  return scope;
}
