/**
 * CONNECT to a forward proxy on a socket that is connected to it (RFC 9110 9.3.6). In: where to, and the credential. Out: the
 * same socket, whose bytes are those of the destination from then on. Only 200 opens a tunnel.
 */
import type { Socket } from "node:net";
import { messageOf } from "../../../lib/errors.ts";
import { ProxyError } from "../../errors.ts";
import { appendPass } from "../../pipeline/cdn-loop.ts";
import { isFieldValue } from "../../pipeline/fields.ts";

const MAX_HEAD_BYTES = 8_192;
const STATUS_LINE = /^HTTP\/1\.[01] ([0-9]{3})(?: |\r\n)/;
const END = "\r\n\r\n";

export interface TunnelRequest {
  /** host:port of the destination. */
  readonly authority: string;
  /** Value of Proxy-Authorization. */
  readonly authorization: string | undefined;
  /** CDN-Loop of the request that the tunnel is for; undefined: it had none, or the tunnel is for several. */
  readonly cdnLoop: string | undefined;
}

/**
 * @returns what came after the head of the answer; nobody listens to the socket, which is paused
 * @throws ProxyError upstream_unreachable, tunnel_unauthorized, internal
 */
export function requestTunnel(socket: Socket, { authority, authorization, cdnLoop }: TunnelRequest): Promise<Buffer> {
  const fields = [`Host: ${authority}`, `CDN-Loop: ${appendPass(cdnLoop)}`];
  if (authorization !== undefined) fields.push(`Proxy-Authorization: ${authorization}`);
  if (!/^[^\s@/?#]+$/.test(authority) || !fields.every(isFieldValue))
    throw new ProxyError("internal", { detail: "the request for a tunnel cannot be written" });
  return new Promise((resolve, reject) => {
    let head = Buffer.alloc(0);
    const settle = (act: () => void): void => {
      socket.pause();
      socket.off("data", onData);
      socket.off("error", onError);
      socket.off("close", onClose);
      act();
    };
    const fail = (detail: string, cause?: unknown): void =>
      settle(() => reject(new ProxyError("upstream_unreachable", { detail: `proxy: ${detail}`, cause })));
    const onData = (chunk: Buffer): void => {
      head = Buffer.concat([head, chunk]);
      const end = head.subarray(0, MAX_HEAD_BYTES).indexOf(END);
      if (end < 0) {
        if (head.length >= MAX_HEAD_BYTES) fail(`more than ${MAX_HEAD_BYTES} bytes of headers`);
        return;
      }
      const status = STATUS_LINE.exec(head.subarray(0, 16).toString("latin1"))?.[1];
      if (status === "200") settle(() => resolve(head.subarray(end + END.length)));
      else if (status === "407") settle(() => reject(new ProxyError("tunnel_unauthorized")));
      else fail(status === undefined ? "no HTTP/1.1" : `answered ${status}`);
    };
    const onError = (error: Error): void => fail(messageOf(error), error);
    const onClose = (): void => fail("closed the connection");
    socket.on("data", onData);
    socket.on("error", onError);
    socket.on("close", onClose);
    socket.write(`CONNECT ${authority} HTTP/1.1\r\n${fields.join("\r\n")}\r\n\r\n`, "latin1");
  });
}
