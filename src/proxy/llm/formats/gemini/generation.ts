/** Generations of Gemini models, whose settings differ. The printers use it. */

/** Returns the generation in a name such as `gemini-2.5-pro`; 0 when it has none. */
export function generationOf(model: string): number {
  return Number(/(?:^|[/.])gemini-(\d{1,3}(?:\.\d{1,3})?)(?:$|[-.@])/.exec(model)?.[1] ?? 0);
}
