/** The order of values of one type as `<` has it, for sorting: texts by code units, whatever the language. */
export function compare<T extends string | bigint | number>(a: T, b: T): number {
  if (a === b) return 0;
  return a < b ? -1 : 1;
}
