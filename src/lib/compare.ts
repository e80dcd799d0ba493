/**
 * Compares two values of one type as `<` does, for sorting: strings by UTF-16 code units, independent of the locale.
 */
export function compare<T extends string | bigint | number>(a: T, b: T): number {
  if (a === b) return 0;
  return a < b ? -1 : 1;
}
