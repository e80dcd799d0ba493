/** What three judges say of one object: the API server with our CRDs and the webhook, the webhook alone, the validator. */
import assert from "node:assert/strict";
import { generatedSchema } from "../../../src/admission/schema.ts";
import { createValidator } from "../../../src/admission/validator.ts";
import type { Violation } from "../../../src/admission/violation.ts";
import { applyDefaults } from "../../../generated/defaults.ts";
import { byText, type Fault } from "../server-verdict.ts";
import { faultsOf, type Kind } from "./kinds.ts";

/**
 * The differences that are meant, as they show in our words:
 * - "***" stands for a value that may hold a credential: it must not reach a terminal or a log; the API server prints it.
 * - "…" ends a value of more than 256 characters, which would fill the screen; the API server prints all of it.
 * Not generated: a fraction within a billionth of a whole number, which the API server takes for an integer at first and
 * refuses when a rule reads it; the validator says at once that it is no integer.
 */
const MEANT = /"\*\*\*"|…/;

/** Everything that a CRD can say, and nothing of what only the webhook sees. */
const validateAsCrd = createValidator({ ...generatedSchema, meaningViolations: () => [] });

/** What the API server has to say: about the CRD first, and only then does it ask the webhook. */
export function expectedOnServer(kind: Kind, object: object): Fault[] {
  const all = faultsOf(kind, object);
  const unknown = all.filter(({ message }) => message.startsWith("unknown field"));
  // Decoding is strict and comes before everything else.
  if (unknown.length > 0) return plain(unknown);
  const structural = validateAsCrd(applyDefaults(kind.groupKind, object)).filter(
    ({ severity }) => severity === "error",
  );
  return plain(structural.length > 0 ? structural : all);
}

export function plain(violations: readonly Violation[]): Fault[] {
  return violations.map(({ path, message }) => ({ path, message })).sort(byText);
}

export function assertSameFaults(here: readonly Fault[], there: readonly Fault[], title: string): void {
  const isSame = here.length === there.length && here.every((fault) => there.some((other) => agree(fault, other)));
  if (!isSame) assert.deepEqual(here, there, title);
}

function agree(here: Fault, there: Fault): boolean {
  if (here.path !== there.path) return false;
  if (here.message === there.message) return true;
  if (!MEANT.test(here.message)) return false;
  const parts = here.message.split(MEANT);
  return there.message.startsWith(parts[0] ?? "") && there.message.endsWith(parts.at(-1) ?? "");
}
