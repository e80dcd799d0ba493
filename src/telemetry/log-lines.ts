/**
 * Access-log lines in their two forms (observability.md 1.1). Whatever a client put into a value, a line stays one line
 * and its pairs stay apart: control characters, separators of lines and marks of writing direction are escaped in both.
 */
import { isListValue, type AttributeSink, type AttributeValue } from "./attributes.ts";

export const LOG_FORMATS = ["text", "json"] as const;
export type LogFormat = (typeof LOG_FORMATS)[number];

/** Builds one line at a time. */
export interface LineForm extends AttributeSink {
  /** @param time RFC 3339 */
  begin(time: string): void;
  /** @returns the line with its end */
  end(): string;
}

export function createLineForm(format: LogFormat): LineForm {
  return format === "json" ? new JsonForm() : new TextForm();
}

/** Members of every line; an attribute of such a name gets another one. */
const OF_THE_LINE: ReadonlySet<string> = new Set(["level", "time", "scope"]);

class JsonForm implements LineForm {
  #line = "";

  begin(time: string): void {
    this.#line = `{"level":"info","time":"${time}","scope":"request"`;
  }

  add(name: string, value: AttributeValue): void {
    const key = OF_THE_LINE.has(name) ? `gwp.${name}` : name;
    this.#line += `,${quoted(key)}:${jsonOf(value)}`;
  }

  end(): string {
    return `${this.#line}}\n`;
  }
}

class TextForm implements LineForm {
  #line = "";

  begin(time: string): void {
    this.#line = `${time}\tinfo\trequest`;
  }

  add(name: string, value: AttributeValue): void {
    this.#line += ` ${bare(name)}=${name === "error" ? quoted(textOf(value)) : bare(textOf(value))}`;
  }

  end(): string {
    return `${this.#line}\n`;
  }
}

function textOf(value: AttributeValue): string {
  if (typeof value === "string") return value;
  return typeof value === "object" ? jsonOf(value) : String(value);
}

function jsonOf(value: AttributeValue | null): string {
  if (typeof value === "string") return quoted(value);
  if (typeof value !== "object" || value === null) return String(value);
  if (isListValue(value)) return `[${value.map(jsonOf).join(",")}]`;
  return `{${Array.from(value, ([name, member]) => `${quoted(name)}:${jsonOf(member)}`).join(",")}}`;
}

/** What needs no quotes: visible ASCII without quotes, backslash and "=". */
const BARE = /^[!#-<>-[\]-~]+$/;
/** What stands in quotes as it is. */
const PLAIN = /^[ !#-[\]-~]*$/;
/** Beyond what JSON escapes: DEL, C1, marks of direction, separators of lines and paragraphs, what has no width. */
const INVISIBLE = /[\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]/g;

function bare(text: string): string {
  return BARE.test(text) ? text : quoted(text);
}

function quoted(text: string): string {
  return PLAIN.test(text) ? `"${text}"` : JSON.stringify(text).replaceAll(INVISIBLE, escaped);
}

function escaped(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;
}
