/**
 * What the mock provider says: decided by simple rules from the conversation alone, so that the same request always
 * gets the same answer. A word is a token.
 */

export interface Tool {
  readonly name: string;
  readonly description: string;
  readonly schema: Readonly<Record<string, unknown>>;
}

export interface Turn {
  readonly role: "system" | "user" | "assistant" | "tool";
  readonly text: string;
}

export interface Conversation {
  readonly model: string;
  readonly turns: readonly Turn[];
  readonly tools: readonly Tool[];
  readonly maxTokens: number;
  readonly stream: boolean;
}

export interface Answer {
  readonly text: string;
  readonly call: { readonly name: string; readonly input: Readonly<Record<string, unknown>> } | undefined;
  readonly truncated: boolean;
  readonly inputTokens: number;
  readonly outputTokens: number;
}

export function countTokens(text: string): number {
  return text.split(/\s+/).filter((word) => word !== "").length;
}

export function answer({ turns, tools, maxTokens }: Conversation): Answer {
  const inputTokens = turns.reduce((sum, { text }) => sum + countTokens(text), 0);
  const last = turns.at(-1);
  const tool = tools[0];
  if (last?.role === "user" && tool !== undefined && asksFor(last.text, tool)) {
    const input = inputFor(tool, last.text);
    const outputTokens = 1 + countTokens(Object.values(input).join(" "));
    return { text: "", call: { name: tool.name, input }, truncated: false, inputTokens, outputTokens };
  }
  const words = (last?.role === "tool" ? `The tool says: ${last.text}` : `You said: ${last?.text ?? ""}`).split(/\s+/);
  const kept = words.slice(0, maxTokens).filter((word) => word !== "");
  const truncated = words.length > maxTokens;
  return { text: kept.join(" "), call: undefined, truncated, inputTokens, outputTokens: kept.length };
}

/** A user asks for a tool by using a word of four letters or more from its name or description. */
function asksFor(text: string, { name, description }: Tool): boolean {
  const known = new Set(wordsOf(`${name} ${description}`).filter(({ length }) => length >= 4));
  return wordsOf(text).some((word) => known.has(word));
}

function wordsOf(text: string): string[] {
  return text.toLowerCase().split(/[^\p{L}\p{N}]+/u);
}

/** A value of the right type for every required member; texts are the last word that the user wrote. */
function inputFor({ schema }: Tool, text: string): Record<string, unknown> {
  const properties = (schema["properties"] ?? {}) as Readonly<Record<string, { readonly type?: unknown }>>;
  const required = Array.isArray(schema["required"]) ? schema["required"] : Object.keys(properties);
  const lastWord = text.match(/[\p{L}\p{N}-]+/gu)?.at(-1) ?? "";
  return Object.fromEntries(required.map((name) => [String(name), valueOf(properties[String(name)]?.type, lastWord)]));
}

function valueOf(type: unknown, word: string): unknown {
  switch (type) {
    case "number":
    case "integer":
      return 1;
    case "boolean":
      return true;
    case "array":
      return [];
    case "object":
      return {};
    default:
      return word;
  }
}

/** The pieces in which a text is streamed: words with the space before them. */
export function pieces(text: string): string[] {
  return text.match(/\s*\S+/g) ?? [];
}
