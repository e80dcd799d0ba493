/** `modelAliases` of an `ai` block: replaces the name of the model. The result is not looked up again. */

export type RenameModel = (model: string) => string;

/** An exact name wins; then the longest pattern that matches the whole name, where "*" stands for any characters. */
export function compileModelAliases(aliases: Readonly<Record<string, string>>): RenameModel {
  // A Map, because names of models are the client's, and objects have members that nobody configured.
  const exact = new Map(Object.entries(aliases).filter(([key]) => !key.includes("*")));
  const patterns = Object.entries(aliases)
    .filter(([key]) => key.includes("*"))
    .sort(([a], [b]) => b.length - a.length || (a < b ? -1 : 1))
    .map(([key, name]) => ({ parts: key.split("*"), name }));
  return (model) => exact.get(model) ?? patterns.find(({ parts }) => matches(parts, model))?.name ?? model;
}

/**
 * Compares without backtracking: each part is taken where it occurs first.
 * @param parts literal texts between the stars; there are at least two
 */
function matches(parts: readonly string[], model: string): boolean {
  const first = parts[0] ?? "";
  const last = parts.at(-1) ?? "";
  if (model.length < first.length + last.length || !model.startsWith(first) || !model.endsWith(last)) return false;
  const end = model.length - last.length;
  let at = first.length;
  for (const part of parts.slice(1, -1)) {
    const found = model.indexOf(part, at);
    if (found === -1 || found + part.length > end) return false;
    at = found + part.length;
  }
  return true;
}
