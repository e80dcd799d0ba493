/** Tells cheaply which events of a stream have to be parsed for their usage. */

/**
 * Tests whether the data of an event may hold a member `usage` or `usageMetadata` that is not null. Escapes can hide the
 * key (`"us\u0061ge"`), so data with any unicode escape counts as well; no other notation can hide it.
 * @param data as latin1
 */
export function mayCarryUsage(data: string): boolean {
  for (let at = data.indexOf("usage"); at !== -1; at = data.indexOf("usage", at + 5)) {
    if (!data.startsWith('":null', at + 5)) return true;
  }
  return data.includes("\\u");
}
