/** IP addresses as text and as bytes. */
import { isIP } from "node:net";

/** Whether the text is an IPv4 or IPv6 address. */
export function isIpAddress(text: string): boolean {
  return isIP(text) !== 0;
}

/** An IP address in text → its 4 or 16 bytes in network order. The text has passed net.isIP. */
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

function groups(text: string): number[] {
  if (text === "") return [];
  return text.split(":").flatMap((group) => {
    if (group.includes(".")) return group.split(".").map(Number);
    const value = Number.parseInt(group, 16);
    return [value >> 8, value & 0xff];
  });
}
