/** Which addresses lead to this machine, however they are written. Read by whatever connects somewhere on behalf of others. */
import { networkInterfaces } from "node:os";
import { ipBytes } from "./ip-bytes.ts";

const MAPPED_PREFIX = Buffer.from("00000000000000000000ffff", "hex");

/** The 16 bytes of an address; IPv4 in its mapped form (RFC 4291 2.5.5.2). @param address that net.isIP knows */
export function mappedBytes(address: string): Buffer {
  const bytes = ipBytes(address);
  return bytes.length === 16 ? bytes : Buffer.concat([MAPPED_PREFIX, bytes]);
}

function isIPv4(bytes: Buffer): boolean {
  return bytes.subarray(0, MAPPED_PREFIX.length).equals(MAPPED_PREFIX);
}

/** 0.0.0.0 and ::, which a connection takes for this machine. */
export function isUnspecified(bytes: Buffer): boolean {
  return bytes.subarray(isIPv4(bytes) ? MAPPED_PREFIX.length : 0).every((byte) => byte === 0);
}

export function isLoopback(bytes: Buffer): boolean {
  if (isIPv4(bytes)) return bytes[12] === 127;
  return bytes[15] === 1 && bytes.subarray(0, 15).every((byte) => byte === 0);
}

/** Whether an interface of this machine has the address now. */
export function isInterfaceAddress(bytes: Buffer): boolean {
  return Object.values(networkInterfaces()).some((addresses) =>
    addresses?.some(({ address }) => mappedBytes(address).equals(bytes)),
  );
}
