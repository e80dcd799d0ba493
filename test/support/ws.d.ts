/** Types of the part of `ws` that tests use; the package has none. */
declare module "ws" {
  import type { EventEmitter } from "node:events";
  import type { Server } from "node:http";

  export interface ConnectOptions {
    readonly ca?: string;
    readonly servername?: string;
    readonly perMessageDeflate?: boolean;
    readonly headers?: Readonly<Record<string, string>>;
  }

  /** The name under which the official client of OpenAI knows them. */
  export type ClientOptions = ConnectOptions;

  /** A client. Events: open, message (data, isBinary), close (code, reason), ping, pong, error. */
  export class WebSocket extends EventEmitter {
    constructor(url: string, protocols: readonly string[], options: ConnectOptions);
    readonly protocol: string;
    /** Extensions that were negotiated. */
    readonly extensions: string;
    send(data: string | Buffer, options?: { readonly binary?: boolean; readonly fin?: boolean }): void;
    ping(data: Buffer): void;
    close(code?: number, reason?: string): void;
    terminate(): void;
  }

  export class WebSocketServer extends EventEmitter {
    constructor(options: {
      readonly host?: string;
      readonly port?: number;
      /** Takes the upgrades of this server instead of a port of its own. */
      readonly server?: Server;
      readonly maxPayload?: number;
      readonly perMessageDeflate?: boolean | { readonly threshold: number };
      readonly handleProtocols?: (offered: ReadonlySet<string>) => string | false;
    });
    readonly clients: ReadonlySet<WebSocket>;
    address(): { readonly port: number };
    close(): void;
  }
}
