/** The guard `moderation`: the Moderations API of OpenAI. A prompt with any flagged text is rejected. */
import type { ModerationGuard } from "../../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { objectsIn } from "../formats/guarded-text.ts";
import { PASS, REJECT, type Check, type GuardDeps } from "./guard.ts";
import { askVendor, unusable } from "./service.ts";

const HOST = "api.openai.com";
const PATH = "/v1/moderations";

export function compileModeration({ model, settings }: ModerationGuard, deps: GuardDeps): Check {
  const callout = deps.hostCallout(HOST, settings);
  return async ({ texts, exchange }) => {
    if (texts.length === 0) return PASS;
    const body = { model, input: texts.map(({ text }) => text) };
    const answer = await askVendor(callout, { path: PATH, body }, exchange);
    const results = objectsIn(answer["results"]);
    if (results.length === 0 || results.some(({ flagged }) => typeof flagged !== "boolean"))
      throw unusable("no results");
    return results.some(({ flagged }) => flagged === true) ? REJECT : PASS;
  };
}
