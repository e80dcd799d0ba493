/**
 * Opens a tunnel through a forward proxy with CONNECT (RFC 9110 §9.3.6), on a socket that is connected to the proxy.
 * From then on the bytes of the socket are those of the destination. Only 200 opens a tunnel. `Dial` uses it.
 */
import type { Socket } from "node:net";
import { messageOf } from "../../../lib/errors.ts";
import { ProxyError } from "../../exchange/errors.ts";
import { appendPass } from "../../exchange/cdn-loop.ts";
import { isFieldValue } from "../../exchange/fields.ts";

const MAX_HEAD_BYTES = 8_192;
const STATUS_LINE = /^HTTP\/1\.[01] ([0-9]{3})(?: |\r\n)/;
const END = "\r\n\r\n";

export interface TunnelRequest {
  /** "host:port" of the destination. */
  readonly authority: string;
  /** Value of Proxy-Authorization (RFC 9110 §11.7.2). */
  readonly authorization: string | undefined;
  /**
   * CDN-Loop field (RFC 8586) of the request that the tunnel is for; undefined when it had none, or for several
   * requests.
   */
  readonly cdnLoop: string | undefined;
}

/**
 * @returns the bytes that followed the head of the response; the socket is paused and without listeners
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
