/**
 * CONNECT and extended CONNECT (RFC 8441) on HTTP/2 streams, used by the HTTP/2 server: a stream that becomes a tunnel,
 * most often for WebSocket. Policies and upstreams see extended CONNECT as the equivalent HTTP/1.1 upgrade.
 */
import { randomBytes } from "node:crypto";
import type { ServerHttp2Stream } from "node:http2";
import { isFieldValue } from "../../exchange/fields.ts";
import type { Tunnel } from "../../exchange/exchange.ts";
import type { RequestHead } from "../received-request.ts";
import { Http2ResponseEncoder } from "./response-encoder.ts";
import { TunnelRelay } from "../tunnel-relay.ts";

/** Rewrites extended CONNECT as an HTTP/1.1 upgrade. @param protocol value of the pseudo-header field `:protocol` */
export function upgradeHead(head: RequestHead, protocol: string): RequestHead {
  const fields = [...head.fields, "connection", "upgrade", "upgrade", isFieldValue(protocol) ? protocol : ""];
  // RFC 8441 §5 omits the WebSocket key, but the HTTP/1.1 handshake with the upstream requires one (RFC 6455 §4.1).
  if (protocol === "websocket") fields.push("sec-websocket-key", randomBytes(16).toString("base64"));
  return { ...head, method: "GET", fields, isBodyless: true, canUpgrade: true };
}

export class Http2UpgradeEncoder extends Http2ResponseEncoder {
  readonly #stream: ServerHttp2Stream;

  constructor(stream: ServerHttp2Stream) {
    super(stream);
    this.#stream = stream;
  }

  /** Turns an ordinary 2xx into 502: the client would take it as the start of the tunnel. */
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
