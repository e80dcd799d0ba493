/** Formats the table cells of docs/reference in Markdown: the type, bounds and default of a field. */
import type { Schema } from "../schema.ts";

export function table(head: readonly string[], rows: readonly string[]): string[] {
  return [`| ${head.join(" | ")} |`, `|${head.map(() => "---|").join("")}`, ...rows];
}

/** Prints one row; it escapes bars and line breaks, which would end a cell. */
export function cells(parts: readonly string[]): string {
  return `| ${parts.map((part) => part.replaceAll("|", "\\|").replaceAll("\n", " ")).join(" | ")} |`;
}

/** Prints text as code; text with a backtick needs a longer fence. */
function code(text: string): string {
  return text.includes("`") ? `\`\` ${text} \`\`` : `\`${text}\``;
}

export function typeOf(site: Schema): string {
  if (site.$ref !== undefined) return `[${site.$ref}](#${site.$ref.toLowerCase()})`;
  if (site.type === "array" && site.items !== undefined) return `list of ${typeOf(site.items)}`;
  if (typeof site.additionalProperties === "object") return `map to ${typeOf(site.additionalProperties)}`;
  if (site.enum !== undefined) return site.enum.map((value) => `\`${String(value)}\``).join(", ");
  if (site["x-kubernetes-int-or-string"] === true) return "integer or string";
  return site.type ?? "any";
}

export function boundsOf(schema: Schema): string {
  const parts: string[] = [];
  const range = (low: number | undefined, high: number | undefined, unit: string): void => {
    if (low === undefined && high === undefined) return;
    const text = high === undefined ? `at least ${low}` : low === undefined ? `at most ${high}` : `${low} to ${high}`;
    parts.push(unit === "" ? text : `${text} ${unit}`);
  };
  range(schema.minimum, schema.maximum, "");
  range(schema.minLength, schema.maxLength, "characters");
  range(schema.minItems, schema.maxItems, "items");
  range(schema.minProperties, schema.maxProperties, "entries");
  if (schema.pattern !== undefined) parts.push(code(schema.pattern));
  const keys = schema["x-kubernetes-list-map-keys"];
  if (keys !== undefined) parts.push(`unique by ${keys.join(", ")}`);
  if (schema["x-kubernetes-list-type"] === "set") parts.push("unique");
  if (schema["x-gw-immutable"] === true) parts.push("may not change");
  return parts.join("; ");
}

export function fallbackOf(schema: Schema): string {
  return schema.default === undefined ? (schema["x-gw-default"] ?? "") : `\`${JSON.stringify(schema.default)}\``;
}
