/** The provider `llmb`: the GitHub Copilot API, which speaks a format by the family of the model. */
import type { HeaderList } from "../../../../lib/header-list.ts";
import { VERSION } from "../../../../lib/version.ts";
import { ProxyError } from "../../../exchange/errors.ts";
import type { FormatName } from "../../formats/chat-format.ts";
import type { Provider, Wire } from "../provider.ts";
import { moveMaxTokens } from "../shared/max-tokens.ts";
import { withModel } from "../shared/standard-path.ts";
import { taggedFormats } from "../shared/tagged-formats.ts";
import { findToken } from "./token.ts";

const PATHS: Readonly<Partial<Record<Wire, string>>> = {
  Completions: "/chat/completions",
  Messages: "/v1/messages",
  Responses: "/responses",
  Embeddings: "/embeddings",
  Models: "/models",
  Rerank: "/rerank",
};

/** The API serves agents only, and tells by these fields that it is called by one. */
const AGENT_FIELDS: Readonly<Record<string, string>> = {
  "content-type": "application/json",
  "editor-version": `gwproxy/${VERSION}`,
  "x-github-api-version": "2025-10-01",
  "x-initiator": "agent",
  "x-interaction-type": "conversation-agent",
  "openai-intent": "conversation-agent",
};

export const copilot: Provider = {
  defaultHost: () => "api.githubcopilot.com",
  formats: (_node, model, tags) => [...formatsOf(model.toLowerCase(), tags), "Embeddings", "Rerank"],
  operations: () => ["Models"],
  path: (_node, call) => withModel(PATHS[call.wire] ?? "", call),
  headers(headers, { usesDefaultCredential }) {
    if (usesDefaultCredential) placeToken(headers);
    for (const [name, value] of Object.entries(AGENT_FIELDS)) headers.set(name, value);
  },
  adjustBody: moveMaxTokens,
};

/** Formats by the beginning of the model's name, where no tag names them; the first row that matches counts. */
const MODELS: readonly (readonly [RegExp, readonly FormatName[]])[] = [
  [/^claude-/, ["Messages", "Completions"]],
  [/^(?:grok|mai)-/, ["Responses"]],
  [/^gpt-(?:5\.4|5-mini)/, ["Completions", "Responses"]],
  [/^gpt-[34]/, ["Completions"]],
  [/^gpt-/, ["Responses"]],
];

function formatsOf(model: string, tags: ReadonlySet<string>): readonly FormatName[] {
  const tagged = taggedFormats(tags);
  return tagged.length > 0 ? tagged : (MODELS.find(([beginning]) => beginning.test(model))?.[1] ?? ["Completions"]);
}

function placeToken(headers: HeaderList): void {
  const token = findToken(process.env);
  if (token === undefined)
    throw new ProxyError("credential_unavailable", {
      detail: "no Copilot token in GH_COPILOT_TOKEN, COPILOT_GITHUB_TOKEN or the configuration of the user",
    });
  headers.set("authorization", `Bearer ${token}`);
}
