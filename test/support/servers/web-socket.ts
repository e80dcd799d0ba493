/** An upstream that speaks WebSocket (RFC 6455): it echoes every message and records the upgrade requests. */
import { createHash } from "node:crypto";
import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import type { ProofContext } from "../proofs/prove.ts";

export interface WebSocketEcho {
  readonly port: number;
  /** Upgrade requests, oldest first. */
  readonly seen: IncomingMessage[];
  readonly sockets: Socket[];
}

const ACCEPT_SUFFIX = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
const CLOSE = 8;

export async function startWebSocketEcho(context: Pick<ProofContext, "after">): Promise<WebSocketEcho> {
  const seen: IncomingMessage[] = [];
  const sockets: Socket[] = [];
  const server = createServer((_request, response) => response.writeHead(200).end("no upgrade"));
  server.on("upgrade", (request, socket: Socket, first) => {
    seen.push(request);
    sockets.push(socket);
    socket.on("error", () => undefined);
    const accept = createHash("sha1").update(`${request.headers["sec-websocket-key"]}${ACCEPT_SUFFIX}`);
    socket.write(
      "HTTP/1.1 101 Switching Protocols\r\nconnection: Upgrade\r\nupgrade: WebSocket\r\n" +
        `sec-websocket-accept: ${accept.digest("base64")}\r\nx-upstream: echo\r\n\r\n`,
    );
    repeat(socket, first);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  context.after(() => {
    for (const socket of sockets) socket.destroy();
    server.closeAllConnections();
    server.close();
  });
  return { port: (server.address() as AddressInfo).port, seen, sockets };
}

function repeat(socket: Socket, first: Buffer): void {
  let rest = first;
  const take = (chunk: Buffer): void => {
    rest = Buffer.concat([rest, chunk]);
    for (let frame = readFrame(rest); frame !== undefined; frame = readFrame(rest)) {
      rest = rest.subarray(frame.size);
      socket.write(printFrame(frame.opcode, frame.payload));
      if (frame.opcode === CLOSE) socket.end();
    }
  };
  socket.on("data", take);
  take(Buffer.alloc(0));
}

interface Frame {
  readonly opcode: number;
  readonly payload: Buffer;
  readonly size: number;
}

/** Parses a frame of a client, which is always masked. */
function readFrame(bytes: Buffer): Frame | undefined {
  if (bytes.length < 2) return undefined;
  const short = (bytes[1] ?? 0) & 0x7f;
  const head = short === 127 ? 10 : short === 126 ? 4 : 2;
  if (bytes.length < head + 4) return undefined;
  const length = short === 127 ? Number(bytes.readBigUInt64BE(2)) : short === 126 ? bytes.readUInt16BE(2) : short;
  const size = head + 4 + length;
  if (bytes.length < size) return undefined;
  const mask = bytes.subarray(head, head + 4);
  const payload = Buffer.from(bytes.subarray(head + 4, size)).map((byte, at) => byte ^ (mask[at % 4] ?? 0));
  return { opcode: (bytes[0] ?? 0) & 0x0f, payload: Buffer.from(payload), size };
}

function printFrame(opcode: number, payload: Buffer): Buffer {
  const head = Buffer.alloc(payload.length < 126 ? 2 : payload.length < 65_536 ? 4 : 10);
  head[0] = 0x80 | opcode;
  if (head.length === 2) head[1] = payload.length;
  else if (head.length === 4) {
    head[1] = 126;
    head.writeUInt16BE(payload.length, 2);
  } else {
    head[1] = 127;
    head.writeBigUInt64BE(BigInt(payload.length), 2);
  }
  return Buffer.concat([head, payload]);
}
