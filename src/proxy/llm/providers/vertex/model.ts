/** Families of models on Vertex AI by their names, and the names in the form of its paths. */
import { isPathSegment } from "../shared/path-segment.ts";

export type ModelFamily = "gemini" | "claude" | "other";

export interface Model {
  readonly family: ModelFamily;
  /** Without the publisher. For Gemini and Claude it is a safe segment of a path. */
  readonly name: string;
}

const CLAUDE_PREFIX = /^(?:publishers\/anthropic\/models\/|anthropic\/)/;
const GEMINI_PREFIX = /^(?:publishers\/google\/models\/|models\/|google\/)/;

/** A name that could steer the path belongs to no family, so that it goes to the path that holds no model. */
export function familyOf(model: string): Model {
  const claude = model.replace(CLAUDE_PREFIX, "");
  if ((claude !== model || claude.startsWith("claude-")) && isPathSegment(claude))
    return { family: "claude", name: claude.replace(/-(\d{8})$/, "@$1") };
  const gemini = withoutPublisher(model);
  if (/^gemini[-@]/.test(gemini) && !gemini.includes("embedding") && isPathSegment(gemini))
    return { family: "gemini", name: gemini };
  return { family: "other", name: model };
}

/** Returns the name of a model of Google as it stands in paths. */
export function withoutPublisher(model: string): string {
  return model.replace(GEMINI_PREFIX, "");
}
