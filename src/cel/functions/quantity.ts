/** Kubernetes resource quantities as CEL values: "1.5Gi", "250m", "2e3". Amounts are exact, in billionths. */
import type { CelFunction, Declaration } from "../function.ts";
import { Failure, NO_OVERLOAD, OVERFLOW } from "../errors.ts";
import { checkedInt } from "../arithmetic.ts";
import { Opaque, isInt, toDouble } from "../values.ts";

const SCALE = 1_000_000_000n;

class Quantity extends Opaque {
  readonly typeName = "kubernetes.Quantity";
  readonly nano: bigint;

  constructor(nano: bigint) {
    super();
    this.nano = nano;
  }

  override equals(other: unknown): boolean {
    return other instanceof Quantity && other.nano === this.nano;
  }

  override toText(): string {
    return this.nano % SCALE === 0n ? String(this.nano / SCALE) : `${this.nano}n`;
  }
}

const BINARY: ReadonlyMap<string, bigint> = new Map(
  ["Ki", "Mi", "Gi", "Ti", "Pi", "Ei"].map((unit, at) => [unit, 1n << BigInt(10 * (at + 1))]),
);
/** Powers of ten, relative to billionths. */
const DECIMAL: ReadonlyMap<string, number> = new Map([
  ["n", 0],
  ["u", 3],
  ["m", 6],
  ["", 9],
  ["k", 12],
  ["M", 15],
  ["G", 18],
  ["T", 21],
  ["P", 24],
  ["E", 27],
]);
const SHAPE = /^([+-]?)(\d{0,30})(?:\.(\d{0,30}))?(?:([KMGTPE]i)|[eE]([+-]?\d{1,2})|([numkMGTPE]?))$/;

function parseQuantity(text: string): Quantity | undefined {
  const match = SHAPE.exec(text);
  if (match === null) return undefined;
  const [, sign, whole = "", decimals = "", binary, exponent, decimal = ""] = match;
  if (whole === "" && decimals === "") return undefined;
  const digits = BigInt(whole + decimals);
  const power = exponent === undefined ? (DECIMAL.get(decimal) ?? 9) : 9 + Number(exponent);
  const shift = (binary === undefined ? power : 9) - decimals.length;
  const factor = BINARY.get(binary ?? "") ?? 1n;
  return new Quantity((sign === "-" ? -1n : 1n) * scaled(digits * factor, shift));
}

/** Scales by a power of ten and rounds fractions of a billionth away from zero, as the API server does. */
function scaled(value: bigint, powerOfTen: number): bigint {
  if (powerOfTen >= 0) return value * 10n ** BigInt(powerOfTen);
  const divisor = 10n ** BigInt(-powerOfTen);
  return (value + divisor - 1n) / divisor;
}

const NOT_A_QUANTITY = new Failure("invalid_argument", "not a quantity");

function onQuantity(apply: (quantity: Quantity) => unknown): CelFunction {
  return (_run, value) => (value instanceof Quantity ? apply(value) : NO_OVERLOAD);
}

/** @param withInt whether the second operand may be a plain int */
function onTwo(apply: (a: bigint, b: bigint) => unknown, withInt = false): CelFunction {
  return (_run, a, b) => {
    if (!(a instanceof Quantity)) return NO_OVERLOAD;
    if (b instanceof Quantity) return apply(a.nano, b.nano);
    return withInt && isInt(b) ? apply(a.nano, BigInt(b) * SCALE) : NO_OVERLOAD;
  };
}

const isQuantity: CelFunction = (_run, text) =>
  typeof text === "string" ? parseQuantity(text) !== undefined : NO_OVERLOAD;
const toQuantity: CelFunction = (_run, text) =>
  typeof text === "string" ? (parseQuantity(text) ?? NOT_A_QUANTITY) : NO_OVERLOAD;

export const QUANTITY_FUNCTIONS: readonly Declaration[] = [
  ["isQuantity(string): bool", isQuantity],
  ["quantity(string): quantity", toQuantity],
  [".isInteger(quantity): bool", onQuantity(({ nano }) => nano % SCALE === 0n)],
  [".asInteger(quantity): int", onQuantity(({ nano }) => (nano % SCALE === 0n ? checkedInt(nano / SCALE) : OVERFLOW))],
  [".asApproximateFloat(quantity): double", onQuantity(({ nano }) => toDouble(Number(nano) / Number(SCALE)))],
  [".sign(quantity): int", onQuantity(({ nano }) => Number(nano > 0n) - Number(nano < 0n))],
  [".compareTo(quantity, quantity): int", onTwo((a, b) => Number(a > b) - Number(a < b))],
  [".isLessThan(quantity, quantity): bool", onTwo((a, b) => a < b)],
  [".isGreaterThan(quantity, quantity): bool", onTwo((a, b) => a > b)],
  [".add(quantity, quantity | int): quantity", onTwo((a, b) => new Quantity(a + b), true)],
  [".sub(quantity, quantity | int): quantity", onTwo((a, b) => new Quantity(a - b), true)],
];
