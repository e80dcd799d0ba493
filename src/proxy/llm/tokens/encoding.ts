/** Chooses the encoding that counts the tokens of a model. token-counter.ts uses it. */

/** Encodings of OpenAI; for models of other vendors they give an estimate. */
export type Encoding = "o200k" | "cl100k";

/**
 * Matches the older models of OpenAI, and Claude, whose own encoding yields more tokens than o200k. A publisher or a
 * region may precede the name.
 */
const CL100K = /(?:^|[/.])(?:gpt-3|gpt-4(?![.\do])|text-embedding-|claude)/;

export function encodingOf(model: string): Encoding {
  return CL100K.test(model.toLowerCase()) ? "cl100k" : "o200k";
}
