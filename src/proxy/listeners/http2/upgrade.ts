/**
 * Extended CONNECT (RFC 8441): a stream of HTTP/2 that goes on as another protocol, most of all WebSocket. Towards policies
 * and upstreams it is the upgrade of HTTP/1.1 that it stands for.
 */
import { randomBytes } from "node:crypto";
import type { ServerHttp2Stream } from "node:http2";
import { isFieldValue } from "../../pipeline/fields.ts";
import type { Tunnel } from "../../pipeline/exchange.ts";
import type { RequestHead } from "../received-request.ts";
import { Http2ResponseEncoder } from "./response-encoder.ts";
import { TunnelRelay } from "../tcp/tunnel-relay.ts";

/** The request that an upstream without HTTP/2 understands. @param protocol of the pseudo-field */
export function upgradeHead(head: RequestHead, protocol: string): RequestHead {
  const fields = [...head.fields, "connection", "upgrade", "upgrade", isFieldValue(protocol) ? protocol : ""];
  // HTTP/2 has no handshake of its own for this, the upstream's needs a key.
  if (protocol === "websocket") fields.push("sec-websocket-key", randomBytes(16).toString("base64"));
  return { ...head, method: "GET", fields, isBodyless: true, canUpgrade: true };
}

export class Http2UpgradeEncoder extends Http2ResponseEncoder {
  readonly #stream: ServerHttp2Stream;

  constructor(stream: ServerHttp2Stream) {
    super(stream);
    this.#stream = stream;
  }

  /** A success would mean that the other protocol has begun. */
  override head(status: number, headers: string[], close: boolean, last: boolean): void {
    super.head(status >= 200 && status < 300 ? 502 : status, headers, close, last);
  }

  join(headers: readonly string[], tunnel: Tunnel, onOver: (relay: TunnelRelay) => void): void {
    const fields: string[] = [":status", "200"];
    for (let at = 0; at < headers.length; at += 2) {
      const name = headers[at] as string;
      if (name !== "sec-websocket-accept") fields.push(name, headers[at + 1] as string);
    }
    this.leave();
    this.#stream.respond(fields, { endStream: false });
    new TunnelRelay(this.#stream, tunnel.stream, onOver).start();
  }
}
