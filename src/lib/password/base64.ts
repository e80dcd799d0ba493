/**
 * The base 64 of crypt(3), for the hashes beside it: its own alphabet, three bytes as four digits, lowest digit first.
 */

export const CRYPT_DIGITS = "./0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/**
 * Encodes bytes in groups.
 *
 * @param groups indexes of the bytes of each group, the highest byte first; a group of n bytes makes n + 1 digits, and
 * a missing byte counts as zero
 */
export function encodeGroups(bytes: Uint8Array, groups: readonly (readonly number[])[]): string {
  let text = "";
  for (const group of groups) {
    let word = 0;
    for (const index of group) word = (word << 8) | (bytes[index] as number); // the groups belong to this digest
    for (let digit = 0; digit <= group.length; digit++) text += CRYPT_DIGITS[(word >>> (6 * digit)) & 63] ?? "";
  }
  return text;
}
