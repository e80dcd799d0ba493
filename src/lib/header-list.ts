/**
 * HTTP header fields in wire order, as node:http's `rawHeaders` provides them: name, value, name, value. Names keep
 * their spelling on the wire and compare case-insensitively (RFC 9110 §5.1). The list is on the hot path, so it has no
 * object per field.
 */
export class HeaderList {
  /** Alternating names and values. Senders read it; changes go through the methods. */
  readonly raw: string[];
  /**
   * Original spellings by lower-case name, kept when a peer wants to see them again; other names are spelled as in
   * `raw`.
   */
  readonly spelling: ReadonlyMap<string, string> | undefined;

  constructor(raw: string[] = [], spelling?: ReadonlyMap<string, string>) {
    this.raw = raw;
    this.spelling = spelling;
  }

  static of(entries: Readonly<Record<string, string>>): HeaderList {
    return new HeaderList(Object.entries(entries).flat());
  }

  /** Returns the first value of a field. @param name lower-case */
  get(name: string): string | undefined {
    const { raw } = this;
    for (let at = 0; at < raw.length; at += 2) if (sameName(raw[at] as string, name)) return raw[at + 1];
    return undefined;
  }

  /** Returns every value of a field, in order. @param name lower-case */
  getAll(name: string): string[] {
    const values: string[] = [];
    const { raw } = this;
    for (let at = 0; at < raw.length; at += 2)
      if (sameName(raw[at] as string, name)) values.push(raw[at + 1] as string);
    return values;
  }

  /** @param name lower-case */
  has(name: string): boolean {
    return this.get(name) !== undefined;
  }

  /** Replaces every value of the name and keeps the position of the first. @param name any case, sent as given */
  set(name: string, value: string): void {
    const lower = name.toLowerCase();
    const { raw } = this;
    for (let at = 0; at < raw.length; at += 2) {
      if (!sameName(raw[at] as string, lower)) continue;
      raw[at + 1] = value;
      this.#removeFrom(at + 2, lower);
      return;
    }
    raw.push(name, value);
  }

  /** Appends one value. */
  add(name: string, value: string): void {
    this.raw.push(name, value);
  }

  /** @param name lower-case */
  remove(name: string): void {
    this.#removeFrom(0, name);
  }

  clone(): HeaderList {
    return new HeaderList(this.raw.slice(), this.spelling);
  }

  #removeFrom(start: number, lower: string): void {
    const { raw } = this;
    for (let at = start; at < raw.length;) {
      if (sameName(raw[at] as string, lower)) raw.splice(at, 2);
      else at += 2;
    }
  }
}

/** Compares case-insensitively, and allocates only when the lengths agree and the spelling differs. */
function sameName(name: string, lower: string): boolean {
  return name.length === lower.length && (name === lower || name.toLowerCase() === lower);
}
