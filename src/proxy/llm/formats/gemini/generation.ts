/** Generations of Gemini models, whose settings differ. The printers use it. */

/** Returns the generation in a name such as `gemini-2.5-pro`; 0 when it has none. */
export function generationOf(model: string): number {
  return Number(/(?:^|[/.])gemini-(\d{1,3}(?:\.\d{1,3})?)(?:$|[-.@])/.exec(model)?.[1] ?? 0);
}

/** Whether the model refuses calls of tools without the signature that it gave them. */
export function needsSignatures(model: string): boolean {
  return generationOf(model) >= 3;
}

/**
 * Stands for the signature of a call that no Gemini model made, such as one of another provider before a failover. The
 * API documents this text for calls that have none.
 */
export const NO_SIGNATURE = "skip_thought_signature_validator";
