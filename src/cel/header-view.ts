/**
 * The header fields of a message as a CEL map, for `request.headers` and its like: names are case-insensitive; one
 * value is a string, several are a list.
 */
import type { HeaderList } from "../lib/header-list.ts";
import { AttributeMap, REDACTED } from "./values.ts";

export type HeaderShape = "plain" | "join" | "raw" | "split";

const SENSITIVE: ReadonlySet<string> = new Set(["authorization", "proxy-authorization"]);

export class HeaderView extends AttributeMap {
  readonly #headers: HeaderList;
  readonly #shape: HeaderShape;
  readonly #redacted: boolean;

  constructor(headers: HeaderList, shape: HeaderShape = "plain", redacted = false) {
    super();
    this.#headers = headers;
    this.#shape = shape;
    this.#redacted = redacted;
  }

  override get lookupSteps(): number {
    return 1 + (this.#headers.raw.length >> 3);
  }

  /** Returns a view with another shape, which replaces an earlier one. */
  shaped(shape: HeaderShape): HeaderView {
    return new HeaderView(this.#headers, shape, this.#redacted);
  }

  redacted(): HeaderView {
    return new HeaderView(this.#headers, this.#shape, true);
  }

  override get(name: string): unknown {
    const lower = name.toLowerCase();
    const found = this.#headers.getAll(lower).map(utf8Text);
    const values = found.filter((value) => value !== undefined);
    if (values.length === 0) return undefined;
    if (this.#redacted && SENSITIVE.has(lower)) values.fill(REDACTED);
    switch (this.#shape) {
      case "join":
        return values.join(",");
      case "raw":
        return values;
      case "split":
        return values.flatMap((value) => value.split(",").map((part) => part.trim()));
      case "plain":
        return values.length === 1 ? values[0] : values;
    }
  }

  override has(name: string): boolean {
    return this.get(name) !== undefined;
  }

  override names(): string[] {
    const names = new Set<string>();
    const { raw } = this.#headers;
    for (let at = 0; at < raw.length; at += 2) {
      if (utf8Text(raw[at + 1] as string) !== undefined) names.add((raw[at] as string).toLowerCase());
    }
    return [...names];
  }

  /** Returns the first cookie of that name (RFC 6265 §4.2). */
  cookie(name: string): string | undefined {
    for (const header of this.#headers.getAll("cookie")) {
      for (const pair of header.split(";")) {
        const at = pair.indexOf("=");
        if (at > 0 && pair.slice(0, at).trim() === name) return pair.slice(at + 1).trim();
      }
    }
    return undefined;
  }
}

/**
 * Decodes a field value, which Node delivers as one character per byte. @returns undefined when the bytes are not UTF-8
 */
function utf8Text(value: string): string | undefined {
  // oxlint-disable-next-line no-control-regex -- "is it ASCII" has no other spelling
  if (/^[\u0000-\u007f]*$/.test(value)) return value;
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(Buffer.from(value, "latin1"));
  } catch {
    return undefined;
  }
}
