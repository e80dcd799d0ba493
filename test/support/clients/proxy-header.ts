/** Encodes headers of the PROXY protocol, version 2, as a load balancer sends them. */
import { isIPv4 } from "node:net";
import { ipBytes } from "../../../src/lib/network/ip-bytes.ts";

const SIGNATURE = Buffer.from("\r\n\r\n\0\r\nQUIT\n", "latin1");

/** @param client client of the connection; undefined for a connection of the load balancer itself (LOCAL) */
export function proxyV2(client: { readonly address: string; readonly port: number } | undefined): Buffer {
  if (client === undefined) return Buffer.concat([SIGNATURE, Buffer.from([0x20, 0, 0, 0])]);
  const ports = Buffer.alloc(4);
  ports.writeUInt16BE(client.port, 0);
  const four = isIPv4(client.address);
  const addresses = Buffer.concat([ipBytes(client.address), ipBytes(four ? "192.0.2.250" : "2001:db8::250"), ports]);
  return Buffer.concat([SIGNATURE, Buffer.from([0x21, four ? 0x11 : 0x21, 0, addresses.length]), addresses]);
}
