/**
 * Names of tools as the Gemini API allows them: a letter or an underscore, then letters, digits, underscores, dots,
 * colons and dashes, 64 in all. Others are rewritten and restored in the answer. print-request.ts uses it.
 */
import { createHash } from "node:crypto";

const ALLOWED = /^[A-Za-z_][A-Za-z0-9_.:-]{0,63}$/;

export class ToolNames {
  readonly #printed = new Map<string, string>();
  /** The client's names by those that the provider gets, where they differ. */
  readonly renamed: Map<string, string> = new Map();

  print(name: string): string {
    let printed = this.#printed.get(name);
    if (printed === undefined) {
      printed = ALLOWED.test(name) ? name : rewrite(name);
      this.#printed.set(name, printed);
      if (printed !== name) this.renamed.set(printed, name);
    }
    return printed;
  }
}

/** The digest keeps apart names that differ only in characters that are not allowed. */
function rewrite(name: string): string {
  const digest = createHash("sha256").update(name).digest("hex").slice(0, 6);
  return `_${name.replace(/[^A-Za-z0-9_.:-]/g, "_").slice(0, 56)}_${digest}`;
}
