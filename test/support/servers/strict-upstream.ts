/**
 * An upstream that accepts only requests that conform to RFC 9112 without any leniency, and records every byte. The
 * tests in test/feature/hostile use it, for instance against request smuggling: a request of the gateway must have
 * exactly one reading, and every other one is an error. It answers each request with its number and its target.
 */
import { createServer, type Socket } from "node:net";
import type { AddressInfo } from "node:net";
import type { ProofContext } from "../proofs/prove.ts";

interface Recorded {
  /** The bytes as they arrived, head and body as framed. */
  readonly bytes: string;
  readonly target: string;
}

export interface StrictUpstream {
  readonly port: number;
  /** Returns the requests since the last call, and the errors in them. Requests that broke off are not included. */
  take(): { readonly requests: readonly Recorded[]; readonly faults: readonly string[] };
}

const HEAD_END = "\r\n\r\n";
const REQUEST_LINE = /^[!#$%&'*+\-.^_`|~0-9A-Z]+ ([\x21-\x7e\x80-\xff]+) HTTP\/1\.1$/;
const FIELD_LINE =
  /^([!#$%&'*+\-.^_`|~0-9A-Za-z]+): ?((?:[\x21-\x7e\x80-\xff](?:[\t\x20-\x7e\x80-\xff]*[\x21-\x7e\x80-\xff])?)?)$/;
const CHUNK_SIZE = /^(?:0|[1-9a-f][0-9a-f]{0,7})$/;
/** Fields that may occur at most once, and never in trailers. */
const SINGLE = new Set(["host", "content-length", "transfer-encoding", "x-forwarded-for", "x-request-id"]);

export async function startStrictUpstream(context: Pick<ProofContext, "after">): Promise<StrictUpstream> {
  let requests: Recorded[] = [];
  let faults: string[] = [];
  let count = 0;
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    let text = "";
    socket.on("error", () => socket.destroy());
    socket.on("close", () => sockets.delete(socket));
    socket.setEncoding("latin1").on("data", (chunk: string) => {
      text += chunk;
      try {
        const request = readRequest(text);
        if (request === undefined) return;
        const { bytes, target } = request;
        if (text.length > bytes.length) throw new Error(`bytes behind a request: ${text.slice(bytes.length)}`);
        text = "";
        requests.push(request);
        const body = `answer ${++count} to ${target}`;
        const head = `HTTP/1.1 200 OK\r\ncontent-length: ${body.length}\r\n\r\n`;
        socket.write(bytes.startsWith("HEAD ") ? head : head + body, "latin1");
      } catch (error) {
        faults.push(`${String(error)} in ${JSON.stringify(text)}`);
        socket.destroy();
      }
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  context.after(() => {
    server.close();
    for (const socket of sockets) socket.destroy();
  });
  return {
    port: (server.address() as AddressInfo).port, // a TCP server has such an address
    take() {
      const taken = { requests, faults };
      requests = [];
      faults = [];
      return taken;
    },
  };
}

/**
 * @returns undefined when the request is not complete yet
 * @throws Error for bytes that are not a valid request
 */
function readRequest(text: string): Recorded | undefined {
  const end = text.indexOf(HEAD_END);
  if (end < 0) return undefined;
  const [line = "", ...lines] = text.slice(0, end).split("\r\n");
  const target = REQUEST_LINE.exec(line)?.[1];
  if (target === undefined) throw new Error("malformed request line");
  const fields = readFields(lines);
  if (!fields.has("host")) throw new Error("no host");
  const start = end + HEAD_END.length;
  const length = bodyLength(text, start, fields);
  return length === undefined ? undefined : { bytes: text.slice(0, start + length), target };
}

function readFields(lines: readonly string[]): Map<string, string> {
  const fields = new Map<string, string>();
  for (const line of lines) {
    const [, name, value] = FIELD_LINE.exec(line) ?? [];
    if (name === undefined || value === undefined) throw new Error("malformed field");
    const key = name.toLowerCase();
    if (SINGLE.has(key) && fields.has(key)) throw new Error(`more than one ${key}`);
    fields.set(key, value);
  }
  return fields;
}

function bodyLength(text: string, start: number, fields: ReadonlyMap<string, string>): number | undefined {
  const coding = fields.get("transfer-encoding");
  const length = fields.get("content-length");
  if (coding !== undefined && length !== undefined) throw new Error("two framings");
  if (coding !== undefined) {
    if (coding !== "chunked") throw new Error("a coding that is not chunked");
    return chunkedLength(text, start);
  }
  if (length === undefined) return 0;
  if (!/^(?:0|[1-9][0-9]*)$/.test(length)) throw new Error("malformed length");
  return text.length - start < Number(length) ? undefined : Number(length);
}

function chunkedLength(text: string, start: number): number | undefined {
  for (let at = start; ;) {
    const lineEnd = text.indexOf("\r\n", at);
    if (lineEnd < 0) return undefined;
    const digits = text.slice(at, lineEnd);
    if (!CHUNK_SIZE.test(digits)) throw new Error("malformed chunk size");
    const size = Number.parseInt(digits, 16);
    at = lineEnd + 2;
    if (size === 0) return trailersEnd(text, at, start);
    if (text.length < at + size + 2) return undefined;
    if (text.slice(at + size, at + size + 2) !== "\r\n") throw new Error("chunk longer than its size");
    at += size + 2;
  }
}

function trailersEnd(text: string, at: number, start: number): number | undefined {
  if (text.startsWith("\r\n", at)) return at + 2 - start;
  const end = text.indexOf(HEAD_END, at);
  if (end < 0) return undefined;
  for (const name of readFields(text.slice(at, end).split("\r\n")).keys())
    if (SINGLE.has(name)) throw new Error(`${name} among the trailers`);
  return end + HEAD_END.length - start;
}
