/** The base 64 of crypt(3): its own alphabet, three bytes as four digits, the lowest digit first. */

export const CRYPT_DIGITS = "./0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/**
 * @param groups indexes of the bytes of each group, the highest byte first; a missing byte is zero and a group of n bytes
 * makes n + 1 digits
 */
export function encodeGroups(bytes: Uint8Array, groups: readonly (readonly number[])[]): string {
  let text = "";
  for (const group of groups) {
    let word = 0;
    for (const index of group) word = (word << 8) | (bytes[index] as number); // the groups are those of this digest
    for (let digit = 0; digit <= group.length; digit++) text += CRYPT_DIGITS[(word >>> (6 * digit)) & 63] ?? "";
  }
  return text;
}
