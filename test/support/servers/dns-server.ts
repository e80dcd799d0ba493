/** A small DNS server on loopback (RFC 1035, over UDP) with answers from a test, which records its queries. */
import { createSocket } from "node:dgram";
import { once } from "node:events";
import { getServers, setServers } from "node:dns";
import { isIPv6 } from "node:net";
import { ipBytes } from "../../../src/lib/network/ip-bytes.ts";
import type { ProofContext } from "../proofs/prove.ts";

/** Addresses of both families by name; "fails" answers SERVFAIL, and a missing name NXDOMAIN. */
type Zone = Map<string, { readonly addresses: readonly string[]; readonly ttl: number } | "fails">;

export interface DnsServer {
  /** The test may change it at any time. */
  readonly zone: Zone;
  /** Names of the queries in lower case, once for each family. */
  readonly asked: string[];
  readonly address: string;
  /** Resolves when the name has been queried so many times since the start, both families counted. */
  askedTimes(name: string, times: number): Promise<void>;
}

const A = 1;
const AAAA = 28;
const HEADER_BYTES = 12;

export async function startDnsServer(context: Pick<ProofContext, "after">): Promise<DnsServer> {
  const zone: Zone = new Map();
  const asked: string[] = [];
  let next = Promise.withResolvers<void>();
  const socket = createSocket("udp4");
  socket.on("message", (query, { address, port }) => {
    const { name, type, end } = questionOf(query);
    asked.push(name);
    socket.send(answerTo(query.subarray(0, end), type, zone.get(name)), port, address);
    next.resolve();
    next = Promise.withResolvers();
  });
  socket.bind(0, "127.0.0.1");
  await once(socket, "listening");
  context.after(() => void socket.close());
  return {
    zone,
    asked,
    address: `127.0.0.1:${socket.address().port}`,
    async askedTimes(name, times) {
      while (asked.filter((one) => one === name).length < times) await next.promise;
    },
  };
}

/** Makes resolvers that are created from now on in this process use the server. */
export function useDnsServer(context: Pick<ProofContext, "after">, { address }: DnsServer): void {
  const usual = getServers();
  context.after(() => setServers(usual));
  setServers([address]);
}

function questionOf(query: Buffer): { name: string; type: number; end: number } {
  const labels: string[] = [];
  let at = HEADER_BYTES;
  for (let length = query.readUInt8(at); length > 0; length = query.readUInt8(at)) {
    labels.push(query.toString("latin1", at + 1, at + 1 + length));
    at += length + 1;
  }
  return { name: labels.join(".").toLowerCase(), type: query.readUInt16BE(at + 1), end: at + 5 };
}

function answerTo(question: Buffer, type: number, entry: ReturnType<Zone["get"]>): Buffer {
  const response = Buffer.from(question);
  const code = entry === undefined ? 3 : entry === "fails" ? 2 : 0;
  const addresses = entry === undefined || entry === "fails" ? [] : entry.addresses.filter((one) => suits(type, one));
  // Flags of a response with recursion available; then the counts: one question, the answers, no other records.
  response.writeUInt16BE(0x8180 + code, 2);
  response.writeUInt16BE(1, 4);
  response.writeUInt16BE(addresses.length, 6);
  response.writeUInt32BE(0, 8);
  const ttl = typeof entry === "object" ? entry.ttl : 0;
  return Buffer.concat([response, ...addresses.map((address) => record(type, ttl, ipBytes(address)))]);
}

function suits(type: number, address: string): boolean {
  return isIPv6(address) ? type === AAAA : type === A;
}

function record(type: number, ttl: number, address: Buffer): Buffer {
  const head = Buffer.alloc(HEADER_BYTES);
  head.writeUInt16BE(0xc000 + HEADER_BYTES, 0); // pointer to the name of the question
  head.writeUInt16BE(type, 2);
  head.writeUInt16BE(1, 4);
  head.writeUInt32BE(ttl, 6);
  head.writeUInt16BE(address.length, 10);
  return Buffer.concat([head, address]);
}
