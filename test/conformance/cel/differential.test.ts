import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { isDeepStrictEqual } from "node:util";
import fc from "fast-check";
import { RULE_STEPS, Run } from "../../../src/cel/budget.ts";
import { compileExpression } from "../../../src/cel/compile/compile-expression.ts";
import { RULE_ENVIRONMENT } from "../../../src/cel/environments/index.ts";
import { CelError } from "../../../src/cel/errors.ts";
import { toHost } from "../../../src/cel/json.ts";
import { expressions } from "./generate.ts";
import { type Answer, type SecondEngine, startSecondEngine } from "./reference.ts";
import { valueOf } from "./values.ts";
import { assertProperty } from "../../support/fixtures/seed.ts";

let second: SecondEngine;

before(async () => {
  second = await startSecondEngine();
});

after(() => second.stop());

const NOTHING = { root: (): unknown => undefined };

/** @returns the value, or the error that there is instead of one */
function first(source: string): unknown {
  try {
    return compileExpression(source, RULE_ENVIRONMENT).evaluate(NOTHING);
  } catch (error) {
    assert.ok(error instanceof CelError, `${source}: ${String(error)}`);
    return error;
  }
}

function difference(source: string, answer: Answer): string | undefined {
  const ours = first(source);
  if (answer.value === undefined) {
    return ours instanceof CelError ? undefined : `a value here, there: ${answer.refused ?? answer.failed}`;
  }
  if (ours instanceof CelError) return `${ours.code} here, a value there: ${JSON.stringify(answer.value)}`;
  const theirs = toHost(new Run(NOTHING, 0, RULE_STEPS), valueOf(answer.value));
  return isDeepStrictEqual(ours, theirs) ? undefined : `another value there: ${JSON.stringify(answer.value)}`;
}

test("generated expressions give what cel-go gives", async () => {
  let values = 0;
  await assertProperty(
    fc.asyncProperty(expressions, async (source) => {
      const answer = await second.ask({ expression: source });
      if (answer.value !== undefined) values++;
      assert.equal(difference(source, answer), undefined);
    }),
    { numRuns: Number(process.env["GWPROXY_EXPRESSIONS"] ?? 2000) },
  );
  // Expressions that only fail would prove little.
  assert.ok(values > 400, `${values} expressions had a value`);
});
