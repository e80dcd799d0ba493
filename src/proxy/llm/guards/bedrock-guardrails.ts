/** The guard `guardrailsA`: the ApplyGuardrail API of Bedrock, which can mask and reject. */
import { create } from "@bufbuild/protobuf";
import { BackendAuthSchema, type BedrockGuardrailsGuard } from "../../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { objectOf, stringOf, type Json, type JsonObject } from "../shared/json.ts";
import { objectsIn } from "../formats/guarded-text.ts";
import { PASS, REJECT, type Check, type GuardDeps, type GuardInput, type Verdict } from "./guard.ts";
import { askVendor, unusable } from "./service.ts";

const AMBIENT = create(BackendAuthSchema, { kind: { case: "cloudA", value: {} } });

export function compileBedrockGuardrails(
  { identifier, version, region, settings }: BedrockGuardrailsGuard,
  deps: GuardDeps,
): Check {
  const host = `bedrock-runtime.${region}.amazonaws.com`;
  const callout = deps.hostCallout(host, settings, { auth: AMBIENT, signingScope: { region, service: "bedrock" } });
  const path = `/guardrail/${encodeURIComponent(identifier)}/version/${encodeURIComponent(version)}/apply`;
  return async (input) => {
    const { texts, phase, exchange } = input;
    if (texts.length === 0) return PASS;
    const content = texts.map(({ text }) => ({ text: { text } }));
    const body = { source: phase === "Request" ? "INPUT" : "OUTPUT", content };
    return verdictOf(await askVendor(callout, { path, body }, exchange), input);
  };
}

function verdictOf(answer: JsonObject, { texts }: GuardInput): Verdict {
  const { action } = answer;
  if (action === "NONE") return PASS;
  if (action !== "GUARDRAIL_INTERVENED") throw unusable("no action");
  const actions = new Set<string>();
  collectActions(answer["assessments"], actions);
  const outputs = objectsIn(answer["outputs"]).map(({ text }) => stringOf(text));
  const isMask = !actions.has("BLOCKED") && actions.has("ANONYMIZED") && outputs.length === texts.length;
  if (!isMask || outputs.includes(undefined)) return REJECT;
  const changes = texts.flatMap((text, at) => {
    const masked = outputs[at] ?? "";
    return masked === text.text ? [] : [{ text, masked }];
  });
  return changes.length === 0 ? PASS : { action: "mask", changes };
}

/** Collects what the policies of the guardrail did; each kind of policy nests its findings differently. */
function collectActions(value: Json | undefined, actions: Set<string>): void {
  if (Array.isArray(value)) for (const item of value) collectActions(item, actions);
  const object = objectOf(value);
  if (object === undefined) return;
  for (const [key, member] of Object.entries(object))
    if (key === "action" && typeof member === "string") actions.add(member);
    else collectActions(member, actions);
}
