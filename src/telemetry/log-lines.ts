/**
 * Formats access log lines as text or JSON (docs/access-log.md). Values may contain any input of a client, so a line
 * must stay one line and its pairs must stay separate: control characters, line separators and bidirectional marks are
 * escaped in both formats.
 */
import { isListValue, type AttributeSink, type AttributeValue } from "./attributes.ts";

export const LOG_FORMATS = ["text", "json"] as const;
export type LogFormat = (typeof LOG_FORMATS)[number];

/** Builds one line at a time. */
export interface LineForm extends AttributeSink {
  /** @param time RFC 3339 */
  begin(time: string): void;
  /** @returns the line with its line end */
  end(): string;
}

export function createLineForm(format: LogFormat): LineForm {
  return format === "json" ? new JsonForm() : new TextForm();
}

/** Members of every line; an attribute of such a name gets a prefix. */
const OF_THE_LINE: ReadonlySet<string> = new Set(["level", "time", "scope"]);

/** Size of the cache of formatted names; clients choose the names of flattened maps, so it must not grow with them. */
const MAX_NAMES = 512;

class Names {
  readonly #known = new Map<string, string>();
  readonly #print: (name: string) => string;

  constructor(print: (name: string) => string) {
    this.#print = print;
  }

  of(name: string): string {
    const known = this.#known.get(name);
    if (known !== undefined) return known;
    const text = this.#print(name);
    if (this.#known.size < MAX_NAMES) this.#known.set(name, text);
    return text;
  }
}

class JsonForm implements LineForm {
  readonly #names = new Names((name) => `,${quoted(OF_THE_LINE.has(name) ? `gwp.${name}` : name)}:`);
  #line = "";

  begin(time: string): void {
    this.#line = `{"level":"info","time":"${time}","scope":"request"`;
  }

  add(name: string, value: AttributeValue): void {
    this.#line += this.#names.of(name) + jsonOf(value);
  }

  end(): string {
    return `${this.#line}}\n`;
  }
}

class TextForm implements LineForm {
  readonly #names = new Names((name) => ` ${bare(name)}=`);
  #line = "";

  begin(time: string): void {
    this.#line = `${time}\tinfo\trequest`;
  }

  add(name: string, value: AttributeValue): void {
    const text = textOf(value);
    this.#line += this.#names.of(name) + (name === "error" ? quoted(text) : bare(text));
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

/** Matches text that needs no quotes: visible ASCII without quotes, backslash and "=". */
const BARE = /^[!#-<>-[\]-~]+$/;
/** Matches text that needs quotes but no escapes. */
const PLAIN = /^[ !#-[\]-~]*$/;
/**
 * Characters escaped in addition to those of JSON: DEL, C1 controls, bidirectional marks, line and paragraph
 * separators, and zero-width characters.
 */
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
