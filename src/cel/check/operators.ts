/** The overloads of the operators, in the signature notation of functions. The checker resolves operators with them. */
import type { BinaryOperator } from "../ast.ts";
import { type Overload, parseSignature } from "../signature.ts";

const ORDER =
  "_(int | uint | double, int | uint | double): bool; _(string, string): bool; _(bool, bool): bool; " +
  "_(bytes, bytes): bool; _(timestamp, timestamp): bool; _(duration, duration): bool";

function overloads(text: string): readonly Overload[] {
  return parseSignature(text).overloads;
}

const order = overloads(ORDER);

export const BINARY: Readonly<Record<Exclude<BinaryOperator, "==" | "!=" | "in">, readonly Overload[]>> = {
  "<": order,
  "<=": order,
  ">": order,
  ">=": order,
  "+": overloads(
    "_(N, N): N; _(string, string): string; _(bytes, bytes): bytes; _(list<A>, list<A>): list<A>; " +
      "_(duration, duration): duration; _(timestamp, duration): timestamp; _(duration, timestamp): timestamp",
  ),
  "-": overloads(
    "_(N, N): N; _(timestamp, timestamp): duration; _(timestamp, duration): timestamp; _(duration, duration): duration",
  ),
  "*": overloads("_(N, N): N"),
  "/": overloads("_(N, N): N"),
  "%": overloads("_(int, int): int; _(uint, uint): uint"),
};

const IN = "_(A, list<A>): bool; _(A, map<A, B>): bool";

export const MEMBERSHIP: readonly Overload[] = overloads(IN);
export const MEMBERSHIP_OR_SUBSTRING: readonly Overload[] = overloads(`${IN}; _(string, string): bool`);

export const NOT: readonly Overload[] = overloads("_(bool): bool");
export const NEGATE: readonly Overload[] = overloads("_(int): int; _(double): double");
export const INDEX: readonly Overload[] = overloads(
  "_(list<A>, int | uint | double): A; _(map<A, B>, A): B; _(map<int, A> | map<uint, A>, int | uint | double): A",
);
