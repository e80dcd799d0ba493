/**
 * Parses Kubernetes quantities: a decimal number with a decimal, binary or exponent suffix. Values are exact, in
 * billionths.
 */
const SYNTAX = /^([+-]?)([0-9]*)(?:\.([0-9]*))?(?:([numkKMGTPE]|[KMGTPE]i)|[eE]([+-]?[0-9]{1,2}))?$/;
const NANO = 9;
const DECIMAL: Readonly<Record<string, number>> = { n: -9, u: -6, m: -3, k: 3, K: 3, M: 6, G: 9, T: 12, P: 15, E: 18 };
const BINARY: Readonly<Record<string, bigint>> = { Ki: 10n, Mi: 20n, Gi: 30n, Ti: 40n, Pi: 50n, Ei: 60n };
const MAX_BYTES = 4_294_967_295n;

/** @returns the value × 10⁹, rounded away from zero as Kubernetes does; undefined when the text is not a quantity */
export function parseQuantity(text: string): bigint | undefined {
  const match = text.length > 64 ? null : SYNTAX.exec(text);
  if (match === null) return undefined;
  const [, sign, whole = "", fraction = "", suffix, exponent] = match;
  if (whole === "" && fraction === "") return undefined;
  let amount = BigInt(whole + fraction);
  let power = NANO - fraction.length;
  if (suffix !== undefined && suffix in BINARY) amount <<= BINARY[suffix] as bigint;
  else if (suffix !== undefined) power += DECIMAL[suffix] as number;
  else if (exponent !== undefined) power += Number(exponent);
  const scaled = power >= 0 ? amount * 10n ** BigInt(power) : divideUp(amount, 10n ** BigInt(-power));
  return sign === "-" ? -scaled : scaled;
}

/**
 * Parses a size in bytes: rounds fractions up and clamps to 1 to 4294967295. @returns undefined when it is not a
 * quantity
 */
export function parseByteSize(value: string | number): number | undefined {
  const scaled = parseQuantity(String(value));
  if (scaled === undefined) return undefined;
  const bytes = scaled <= 0n ? 1n : divideUp(scaled, 10n ** BigInt(NANO));
  return Number(bytes > MAX_BYTES ? MAX_BYTES : bytes);
}

function divideUp(amount: bigint, by: bigint): bigint {
  return (amount + by - 1n) / by;
}
