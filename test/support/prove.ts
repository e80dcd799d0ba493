/**
 * A proof is a test through real sockets that names the fields it proves. The same body serves three runs: as an
 * ordinary test; as an entry of the ledger; and with one field dropped before translation, when it has to fail.
 */
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { test, type TestContext } from "node:test";

export interface ProofContext {
  /** Registers clean-up, as in node:test. */
  after(clean: () => void | Promise<void>): void;
  /** "GwPolicy spec.traffic.timeouts.request" that must not reach the translator; undefined in an ordinary run. */
  readonly dropped: string | undefined;
}

export interface Proof {
  readonly field: string;
  readonly name: string;
}

/** Filled as feature files are loaded; read by the ledger. */
export const proofs: Proof[] = [];

/** "list": only collect. "check": only run with fields dropped. Otherwise the ordinary tests. */
const mode = process.env["GWPROXY_FIELDS_MODE"] ?? "test";
/** "2/5": of five equal shares of the fields the third one. */
const [share = 0, shares = 1] = (process.env["GWPROXY_FIELDS_SHARE"] ?? "0/1").split("/").map(Number);

/** @param fields "Kind path", as the ledger prints them: `GwPolicy spec.traffic.timeouts.request` */
export function prove(
  fields: string | readonly string[],
  name: string,
  body: (context: ProofContext) => Promise<void>,
): void {
  const list = typeof fields === "string" ? [fields] : fields;
  proofs.push(...list.map((field) => ({ field, name })));
  if (mode === "test") test(name, (t) => body(contextOf(t)));
  if (mode !== "check") return;
  for (const field of list.filter(inShare)) {
    test(`without ${field} this fails: ${name}`, async (t) => {
      await assert.rejects(
        () => body(contextOf(t, field)),
        () => true,
        `the proof passes although ${field} never reached the translator`,
      );
    });
  }
}

/** What the servers of `test/support` clean up with. */
export function contextOf(t: TestContext, dropped?: string): ProofContext {
  return { after: (clean) => t.after(clean), dropped };
}

function inShare(field: string): boolean {
  return createHash("sha256").update(field).digest().readUInt32BE(0) % shares === share;
}
