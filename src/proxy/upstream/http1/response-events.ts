/** What the response parser needs to know of a request, and what it tells the connection that feeds it. */
import type { HeaderList } from "../../../lib/header-list.ts";

/** Properties of the request that decide how its response is parsed. */
export interface Expected {
  /** True for HEAD: no body follows, whatever the header fields announce (RFC 9110 §9.3.2). */
  readonly headOnly: boolean;
  /** True when the request asked for another protocol, so that 101 is acceptable. */
  readonly mayUpgrade: boolean;
  /** True when the spelling of the field names has to be preserved. */
  readonly keepsCase: boolean;
}

export interface ResponseEvents {
  onHead(status: number, headers: HeaderList, bodyFollows: boolean): void;
  onData(chunk: Buffer): void;
  /** @returns memory for the chunk that the next `onData` hands over */
  room(bytes: number): Buffer;
  /** The upstream has switched protocols, as requested. @param rest bytes of the new protocol that followed the head */
  onSwitch(protocol: string, headers: HeaderList, rest: Buffer): void;
  /** @param reusable the connection may carry another request */
  onEnd(trailers: readonly string[], reusable: boolean): void;
}
