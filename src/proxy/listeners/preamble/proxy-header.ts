/**
 * Parses the PROXY protocol header, version 1 (text) and 2 (binary), in which a load balancer names the client; the
 * acceptor uses it. Every client that reaches the port can write one, so the parser is strict and its input bounded.
 *
 *   v1: "PROXY TCP4 source destination sourcePort destinationPort\r\n", at most 107 bytes
 *   v2: signature (12) | version and command | family and transport | length (2) | addresses, TLVs
 */
import { isIPv4, isIPv6 } from "node:net";

interface ProxyHeader {
  /** Length of the header. */
  readonly bytes: number;
  /** undefined when the load balancer connects for itself (LOCAL, UNKNOWN) or names no IP address. */
  readonly client: { readonly address: string; readonly port: number } | undefined;
}

export type HeaderVerdict = ProxyHeader | "none" | "invalid";

/** Accepted versions. Bytes of a version that is not accepted count as no header. */
export interface HeaderVersions {
  readonly v1: boolean;
  readonly v2: boolean;
}

const SIGNATURE = Buffer.from("\r\n\r\n\0\r\nQUIT\n", "latin1");
const V2_HEAD_BYTES = 16;
/** Bounds the whole version 2 header, with the TLVs that load balancers add. */
const MAX_V2_BYTES = 4_096;
const V1_START = Buffer.from("PROXY ", "latin1");
/** The longest line of version 1, with its line end. */
const MAX_V1_BYTES = 107;
const PORT = /^(?:0|[1-9][0-9]{0,4})$/;

/** @param start all bytes since the start of the connection @returns undefined when more bytes are needed */
export function readProxyHeader(start: Buffer, { v1, v2 }: HeaderVersions): HeaderVerdict | undefined {
  if (v2 && begins(start, SIGNATURE)) return readV2(start);
  if (v1 && begins(start, V1_START)) return readV1(start);
  return "none";
}

function begins(start: Buffer, mark: Buffer): boolean {
  const compared = Math.min(start.length, mark.length);
  return start.subarray(0, compared).equals(mark.subarray(0, compared));
}

function readV1(start: Buffer): HeaderVerdict | undefined {
  const end = start.subarray(0, MAX_V1_BYTES).indexOf("\r\n");
  if (end < 0) return start.length < MAX_V1_BYTES ? undefined : "invalid";
  const bytes = end + 2;
  const [, family, source = "", destination = "", sourcePort = "", destinationPort = "", ...more] = start
    .toString("latin1", 0, end)
    .split(" ");
  if (family === "UNKNOWN") return { bytes, client: undefined };
  const isAddress = family === "TCP4" ? isIPv4 : family === "TCP6" ? isIPv6 : undefined;
  if (isAddress === undefined || !isAddress(source) || !isAddress(destination) || more.length > 0) return "invalid";
  if (![sourcePort, destinationPort].every((port) => PORT.test(port) && Number(port) <= 65_535)) return "invalid";
  return { bytes, client: { address: source, port: Number(sourcePort) } };
}

const COMMAND = { local: 0, proxy: 1 } as const;
const FAMILY = { unspecified: 0, ipv4: 1, ipv6: 2, unix: 3 } as const;

function readV2(start: Buffer): HeaderVerdict | undefined {
  if (start.length < V2_HEAD_BYTES) return undefined;
  const version = start.readUInt8(12) >> 4;
  const command = start.readUInt8(12) & 0x0f;
  const family = start.readUInt8(13) >> 4;
  const length = start.readUInt16BE(14);
  const bytes = V2_HEAD_BYTES + length;
  if (version !== 2 || bytes > MAX_V2_BYTES || command > COMMAND.proxy || family > FAMILY.unix) return "invalid";
  if (start.length < bytes) return undefined;
  const addresses = start.subarray(V2_HEAD_BYTES, bytes);
  if (command === COMMAND.local) return { bytes, client: undefined };
  switch (family) {
    case FAMILY.ipv4:
      if (length < 12) return "invalid";
      return { bytes, client: { address: addresses.subarray(0, 4).join("."), port: addresses.readUInt16BE(8) } };
    case FAMILY.ipv6:
      if (length < 36) return "invalid";
      return { bytes, client: { address: printIPv6(addresses), port: addresses.readUInt16BE(32) } };
    default:
      return { bytes, client: undefined };
  }
}

function printIPv6(bytes: Buffer): string {
  const groups = Array.from({ length: 8 }, (_none, at) => bytes.readUInt16BE(at * 2).toString(16));
  // The URL parser prints the shortest form (RFC 5952).
  return new URL(`http://[${groups.join(":")}]/`).hostname.slice(1, -1);
}
