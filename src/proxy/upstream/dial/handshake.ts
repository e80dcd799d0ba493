/**
 * The TLS handshake on a connected socket: directly to an upstream, to a proxy, or through a tunnel. `Dial` uses it.
 */
import type { Socket } from "node:net";
import { connect, type ConnectionOptions, type TLSSocket } from "node:tls";
import { messageOf } from "../../../lib/errors.ts";
import { ignore } from "../../../lib/ignore.ts";
import { ProxyError } from "../../exchange/errors.ts";

/** @returns a TLS socket without listeners @throws ProxyError upstream_unreachable */
export function handshake(socket: Socket, options: ConnectionOptions): Promise<TLSSocket> {
  // Errors of the inner socket also end the TLS socket, which reports them. Without a listener they would end the
  // process.
  socket.on("error", ignore);
  return new Promise((resolve, reject) => {
    const secured = connect({ ...options, socket });
    let failure: Error | undefined;
    const keep = (error: Error): void => void (failure ??= error);
    const close = (): void => reject(unreachable(failure ?? new Error("closed during the handshake")));
    secured.on("error", keep);
    secured.on("close", close);
    secured.once("secureConnect", () => {
      secured.off("error", keep);
      secured.off("close", close);
      resolve(secured);
    });
  });
}

export function unreachable(cause: Error): ProxyError {
  return new ProxyError("upstream_unreachable", { detail: messageOf(cause), cause });
}
