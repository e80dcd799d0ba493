/** What a row of the tables of hostile requests holds, and the words that they are written in. */

export interface HostileRequest {
  readonly name: string;
  readonly bytes: string;
  /** Of the answers, in order. */
  readonly statuses: readonly number[];
  /** The gateway ends the connection; otherwise it has stayed in step and serves another request. */
  readonly closed: boolean;
  /** Each request that the upstream sees, with `*` for the request's number. */
  readonly upstream: readonly string[];
  /** The client ends its side behind the bytes. */
  readonly ends?: boolean;
}

/** A request as the gateway writes it for the host `a`. @param fields lines between Host and what the gateway adds */
export function sent(line: string, fields = "", framing = "", body = ""): string {
  return (
    `${line} HTTP/1.1\r\nhost: a\r\n${fields}x-forwarded-for: 127.0.0.1\r\nx-forwarded-proto: http\r\n` +
    `x-forwarded-host: a\r\nx-forwarded-port: *\r\nx-request-id: *\r\ncdn-loop: gwproxy\r\n${framing}\r\n${body}`
  );
}

/** The same, where the client has sent CDN-Loop. */
export function sentAfter(passes: string): string {
  return GET.replace("cdn-loop: ", () => `cdn-loop: ${passes}, `);
}

const CHUNKED: string = "transfer-encoding: chunked\r\n";
export const GET: string = sent("GET /");
export const POST = (body: string): string => sent("POST /", "", `content-length: ${body.length}\r\n`, body);
export const STREAM = (body: string): string => sent("POST /", "", CHUNKED, body);

/** Refused before anything is forwarded, and the connection ends. */
export function refused(name: string, bytes: string, status = 400): HostileRequest {
  return { name, bytes, statuses: [status], closed: true, upstream: [] };
}

/** Forwarded, but broken off: the upstream never sees the end of it. */
export function brokenOff(name: string, bytes: string, more: Partial<HostileRequest> = {}): HostileRequest {
  return { name, bytes, statuses: [], closed: true, upstream: [], ...more };
}

/** Forwarded as these bytes and no others; the connection stays in step. */
export function normalised(name: string, bytes: string, ...upstream: readonly string[]): HostileRequest {
  return { name, bytes, statuses: upstream.map(() => 200), closed: false, upstream };
}

export const get = (fields: string): string => `GET / HTTP/1.1\r\nHost: a\r\n${fields}\r\n`;
export const post = (fields: string, body: string): string => `POST / HTTP/1.1\r\nHost: a\r\n${fields}\r\n\r\n${body}`;
export const coded = (coding: string, body = "0\r\n\r\n"): string => post(`Transfer-Encoding:${coding}`, body);
export const chunks = (body: string): string => coded(" chunked", body);
export const line = (text: string): string => `${text}\r\nHost: a\r\n\r\n`;
export const host = (value: string): string => `GET / HTTP/1.1\r\nHost:${value}\r\n\r\n`;
export const SMUGGLED = "GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n";
