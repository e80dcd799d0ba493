/** Short forms for tables of expressions. */
import assert from "node:assert/strict";
import { test } from "node:test";

import { compileExpression } from "../../../src/cel/compile/compile-expression.ts";
import type { Environment } from "../../../src/cel/environment.ts";
import { REQUEST_ENVIRONMENT } from "../../../src/cel/environments/index.ts";
import { CelError, type CelErrorCode } from "../../../src/cel/errors.ts";
import type { Scope } from "../../../src/cel/scope.ts";

export type Roots = Readonly<Record<string, unknown>>;

export function scopeOf(roots: Roots): Scope {
  return { root: (name) => (Object.hasOwn(roots, name) ? roots[name] : undefined) };
}

export function evaluate(source: string, roots: Roots = {}, environment: Environment = REQUEST_ENVIRONMENT): unknown {
  return compileExpression(source, environment).evaluate(scopeOf(roots));
}

/** The code of the error, wherever it happens; undefined when there is none. */
export function failureCode(run: () => unknown): CelErrorCode | undefined {
  try {
    run();
    return undefined;
  } catch (error) {
    assert.ok(error instanceof CelError, String(error));
    return error.code;
  }
}

/** One test for each row: expression and result. */
export function gives(
  rows: readonly (readonly [string, unknown])[],
  roots: Roots = {},
  environment?: Environment,
): void {
  for (const [source, expected] of rows) {
    test(`${source} gives ${show(expected)}`, () => {
      assert.deepStrictEqual(evaluate(source, roots, environment), expected);
    });
  }
}

/** One test for each row: expression and code of the error. */
export function fails(
  rows: readonly (readonly [string, CelErrorCode])[],
  roots: Roots = {},
  environment?: Environment,
): void {
  for (const [source, code] of rows) {
    test(`${source.length > 80 ? `${source.slice(0, 80)}…` : source} fails with ${code}`, () => {
      assert.equal(
        failureCode(() => evaluate(source, roots, environment)),
        code,
      );
    });
  }
}

/** Text without a pattern, the same in every run. */
export function noise(alphabet: string, length: number): string {
  let state = 1;
  return Array.from({ length }, () => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) & 0x7fff_ffff;
    return alphabet[(state >> 16) % alphabet.length];
  }).join("");
}

function show(value: unknown): string {
  return JSON.stringify(value, (_, item: unknown) => (typeof item === "bigint" ? `${item}` : item)) ?? String(value);
}
