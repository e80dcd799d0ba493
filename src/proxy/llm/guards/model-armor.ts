/** The guard `guardrailsB`: the API of Google Model Armor. It rejects and never masks. */
import { create } from "@bufbuild/protobuf";
import { BackendAuthSchema, type ModelArmorGuard } from "../../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { objectOf, type Json } from "../shared/json.ts";
import { PASS, REJECT, type Check, type GuardDeps } from "./guard.ts";
import { askVendor, unusable } from "./service.ts";

const AMBIENT = create(BackendAuthSchema, { kind: { case: "cloudC", value: {} } });

const METHODS = {
  Request: { name: "sanitizeUserPrompt", member: "user_prompt_data" },
  Response: { name: "sanitizeModelResponse", member: "model_response_data" },
} as const;

export function compileModelArmor({ template, project, location, settings }: ModelArmorGuard, deps: GuardDeps): Check {
  const callout = deps.hostCallout(`modelarmor.${location}.rep.googleapis.com`, settings, { auth: AMBIENT });
  const [projectId, place, templateId] = [project, location, template].map(encodeURIComponent);
  const resource = `/v1/projects/${projectId}/locations/${place}/templates/${templateId}`;
  return async ({ texts, phase, exchange }) => {
    if (texts.length === 0) return PASS;
    const { name, member } = METHODS[phase];
    const body = { [member]: { text: texts.map(({ text }) => text).join("\n") } };
    const answer = await askVendor(callout, { path: `${resource}:${name}`, body }, exchange);
    const result = objectOf(answer["sanitizationResult"] ?? answer["sanitization_result"]);
    if (result === undefined) throw unusable("no sanitizationResult");
    const invocation = result["invocationResult"] ?? result["invocation_result"] ?? "SUCCESS";
    if (hasMatch(result)) return REJECT;
    // Filters that were not run have found nothing, which says nothing.
    if (invocation !== "SUCCESS") throw unusable("filters were not run");
    return PASS;
  };
}

/** Each filter nests its state differently, and results come as a list or as a map. */
function hasMatch(value: Json | undefined): boolean {
  if (Array.isArray(value)) return value.some(hasMatch);
  const object = objectOf(value);
  if (object === undefined) return value === "MATCH_FOUND";
  return Object.values(object).some(hasMatch);
}
