/**
 * Decides which addresses lead to this machine or its link, in every spelling. All code that connects on behalf of
 * others uses it against SSRF, and the translator rejects such addresses in objects of a cluster.
 */
import { networkInterfaces } from "node:os";
import { isIP } from "node:net";
import { ipBytes } from "./ip-bytes.ts";

const MAPPED_PREFIX = Buffer.from("00000000000000000000ffff", "hex");

/**
 * Returns the 16 bytes of an address, IPv4 in its mapped form (RFC 4291 §2.5.5.2). @param address must have passed
 * net.isIP
 */
export function mappedBytes(address: string): Buffer {
  const bytes = ipBytes(address);
  return bytes.length === 16 ? bytes : Buffer.concat([MAPPED_PREFIX, bytes]);
}

function isIPv4(bytes: Buffer): boolean {
  return bytes.subarray(0, MAPPED_PREFIX.length).equals(MAPPED_PREFIX);
}

/** Matches 0.0.0.0 and ::, which connect to this machine. */
export function isUnspecified(bytes: Buffer): boolean {
  return bytes.subarray(isIPv4(bytes) ? MAPPED_PREFIX.length : 0).every((byte) => byte === 0);
}

export function isLoopback(bytes: Buffer): boolean {
  if (isIPv4(bytes)) return bytes[12] === 127;
  return bytes[15] === 1 && bytes.subarray(0, 15).every((byte) => byte === 0);
}

function isLinkLocal(bytes: Buffer): boolean {
  if (isIPv4(bytes)) return bytes[12] === 169 && bytes[13] === 254;
  // fe80::/10 (RFC 4291 §2.5.6)
  return bytes[0] === 0xfe && ((bytes[1] ?? 0) & 0xc0) === 0x80;
}

/** Matches loopback, link-local and unspecified addresses. @param address must have passed net.isIP */
export function isLocalAddress(address: string): boolean {
  const bytes = mappedBytes(address);
  return isUnspecified(bytes) || isLoopback(bytes) || isLinkLocal(bytes);
}

/** Tells whether an interface of this machine has the address now. */
export function isInterfaceAddress(bytes: Buffer): boolean {
  return Object.values(networkInterfaces()).some((addresses) =>
    addresses?.some(({ address }) => mappedBytes(address).equals(bytes)),
  );
}

/** Names that mean this machine, whatever a DNS server answers (RFC 6761 §6.3). */
const LOCALHOST = /(?:^|\.)localhost\.?$/i;

/** Tells without a DNS lookup whether a host is on this machine or its link. */
export function isLocalHost(host: string): boolean {
  if (LOCALHOST.test(host)) return true;
  const address = parseAddress(host);
  return address !== undefined && isLocalAddress(address);
}

/** Parses an address in any form that a resolver accepts; undefined when the host is a name. */
function parseAddress(host: string): string | undefined {
  const text = host.replace(/^\[(.*)\]$/, "$1");
  return isIP(text) === 0 ? parseNumbers(text) : text;
}

/**
 * Parses the older forms of inet_aton(3): one to four numbers, decimal, octal or hexadecimal; the last one fills the
 * remaining bytes. `http://2130706433/` reaches 127.0.0.1 this way.
 */
function parseNumbers(text: string): string | undefined {
  const parts = text.replace(/\.$/, "").split(".");
  if (parts.length > 4 || !parts.every((part) => /^(?:0x[0-9a-f]{0,16}|[0-9]{1,24})$/i.test(part))) return undefined;
  const numbers = parts.map((part) => Number.parseInt(part, radixOf(part)) || 0);
  const last = numbers.pop() ?? 0;
  if (numbers.some((number) => number > 255) || last >= 256 ** (4 - numbers.length)) return undefined;
  const value = numbers.reduce((sum, number, at) => sum + number * 256 ** (3 - at), last);
  return [24, 16, 8, 0].map((shift) => Math.floor(value / 2 ** shift) % 256).join(".");
}

function radixOf(part: string): number {
  if (/^0x/i.test(part)) return 16;
  return part.startsWith("0") ? 8 : 10;
}

/**
 * Removes the brackets of an IPv6 address such as "[::1]": they belong to the URL syntax (RFC 3986 §3.2.2) and not to
 * the address that is dialled.
 */
export function withoutBrackets(host: string): string {
  return host.startsWith("[") && host.endsWith("]") ? host.slice(1, -1) : host;
}
