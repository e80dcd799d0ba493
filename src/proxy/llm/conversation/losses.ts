/**
 * What a translation leaves out because the target cannot express it and the meaning does not depend on it. The handler
 * names it in one debug event.
 */
const MAX_LOSSES = 50;

export class Losses {
  readonly #names = new Set<string>();

  /** @param name of a field, or the path of a part in the client's body */
  add(name: string): void {
    if (this.#names.size < MAX_LOSSES) this.#names.add(name);
  }

  get names(): readonly string[] {
    return [...this.#names];
  }
}
