/**
 * HTTP header fields in wire order, as node:http's `rawHeaders` hands them over: name, value, name, value.
 * Names keep their spelling on the wire and compare without case. No object per header: this sits on the hot path.
 */
export class HeaderList {
  /** Alternating names and values. Read it to send; edit through the methods. */
  readonly raw: string[];
  /** How names were written, by their lower-case form, where somebody wants to see them so again; a name not in it is as in `raw`. */
  readonly spelling: ReadonlyMap<string, string> | undefined;

  constructor(raw: string[] = [], spelling?: ReadonlyMap<string, string>) {
    this.raw = raw;
    this.spelling = spelling;
  }

  static of(entries: Readonly<Record<string, string>>): HeaderList {
    return new HeaderList(Object.entries(entries).flat());
  }

  /** The first value of a header. @param name lower-case */
  get(name: string): string | undefined {
    const { raw } = this;
    for (let at = 0; at < raw.length; at += 2) if (sameName(raw[at] as string, name)) return raw[at + 1];
    return undefined;
  }

  /** Every value of a header, in order. @param name lower-case */
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

  /** Replaces every value of the name; keeps the place of the first. @param name any case, sent as given */
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

  /** Appends one more value. */
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

/** Case-blind comparison that allocates only when the lengths agree and the spelling differs. */
function sameName(name: string, lower: string): boolean {
  return name.length === lower.length && (name === lower || name.toLowerCase() === lower);
}
