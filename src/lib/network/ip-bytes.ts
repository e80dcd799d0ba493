/** Converts IP addresses between text and bytes. */
import { isIP } from "node:net";

export function isIpAddress(text: string): boolean {
  return isIP(text) !== 0;
}

/** Converts an address to its 4 or 16 bytes in network order. @param address must have passed net.isIP */
export function ipBytes(address: string): Buffer {
  const text = address.replace(/%.*$/, "");
  if (!text.includes(":")) return Buffer.from(text.split(".").map(Number));
  const [head = "", tail] = text.split("::");
  const left = groups(head);
  const right = tail === undefined ? [] : groups(tail);
  const bytes = Buffer.alloc(16);
  bytes.set(left, 0);
  bytes.set(right, 16 - right.length);
  return bytes;
}

/**
 * Returns the key under which clients share a limit or a turn: an IPv4 address, or the /64 of an IPv6 address, because
 * a single host usually has a whole /64. Text that is not an address is returned as it is.
 */
export function clientNetwork(address: string): string {
  if (!address.includes(":") || !isIpAddress(address)) return address;
  const bytes = ipBytes(address);
  // A dual-stack socket shows IPv4 clients as ::ffff:0:0/96 (RFC 4291 §2.5.5.2).
  const isMapped = bytes.readUInt32BE(8) === 0xffff && bytes.readBigUInt64BE(0) === 0n;
  return isMapped ? bytes.subarray(12).join(".") : bytes.toString("hex", 0, 8);
}

function groups(text: string): number[] {
  if (text === "") return [];
  return text.split(":").flatMap((group) => {
    if (group.includes(".")) return group.split(".").map(Number);
    const value = Number.parseInt(group, 16);
    return [value >> 8, value & 0xff];
  });
}
