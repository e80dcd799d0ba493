/**
 * Parses the CONNECT head (RFC 9110 §9.3.6) at the start of each connection of a Bind with `connect: tunnel`; the
 * acceptor uses it. It is a strict parser of its own and not node's, because the bytes after the head belong to the
 * tunnel and none of them may be consumed.
 */
import { HeaderList } from "../../../lib/header-list.ts";
import { ProxyError } from "../../exchange/errors.ts";
import { fieldOf, isFieldValue, ROLE } from "../../exchange/fields.ts";
import { portOfAuthority } from "./authority-form.ts";

export interface ConnectHead {
  /** Length of the head, its final empty line included. */
  readonly bytes: number;
  readonly port: number;
  readonly headers: HeaderList;
}

const START = Buffer.from("CONNECT ", "latin1");
const END = Buffer.from("\r\n\r\n", "latin1");
const MAX_BYTES = 65_536;
const REQUEST_LINE = /^CONNECT ([^ ]+) HTTP\/1\.1$/;
/** Start of a request line with another method. */
const OTHER_METHOD = /^[A-Z]{1,16} /;
const BLANKS = /^[\t ]+|[\t ]+$/g;

/** @param start all bytes since the start of the connection @returns undefined when more bytes are needed */
export function readConnect(start: Buffer, maxFields: number): ConnectHead | ProxyError | undefined {
  const compared = Math.min(start.length, START.length);
  if (!start.subarray(0, compared).equals(START.subarray(0, compared))) return unexpectedStart(start);
  const end = start.subarray(0, MAX_BYTES).indexOf(END);
  if (end < 0) return start.length < MAX_BYTES ? undefined : new ProxyError("headers_too_large");
  const [line = "", ...lines] = start.toString("latin1", 0, end).split("\r\n");
  const [, authority = ""] = REQUEST_LINE.exec(line) ?? [];
  const port = portOfAuthority(authority);
  if (port === undefined) return invalid("CONNECT without host and port");
  if (lines.length > maxFields) return new ProxyError("headers_too_large");
  const headers = readFields(lines);
  return headers instanceof ProxyError ? headers : { bytes: end + END.length, port, headers };
}

/**
 * Decides between another method and bytes that are not HTTP; undefined while a method name may still be incomplete.
 */
function unexpectedStart(start: Buffer): ProxyError | undefined {
  const text = start.toString("latin1", 0, 17);
  if (OTHER_METHOD.test(text)) return new ProxyError("method_not_allowed");
  return /^[A-Z]{0,16}$/.test(text) ? undefined : invalid("no HTTP");
}

function readFields(lines: readonly string[]): HeaderList | ProxyError {
  const raw: string[] = [];
  let hosts = 0;
  for (const line of lines) {
    const colon = line.indexOf(":");
    const field = fieldOf(line.slice(0, Math.max(colon, 0)));
    const value = line.slice(colon + 1).replaceAll(BLANKS, "");
    if (field === undefined || !isFieldValue(value)) return invalid("malformed header line");
    if (field.role === ROLE.host) hosts++;
    const framed = field.role === ROLE.contentLength ? value !== "0" : field.role === ROLE.transferEncoding;
    if (framed) return invalid("CONNECT with a body");
    raw.push(field.name, value);
  }
  return hosts === 1 ? new HeaderList(raw) : invalid("not exactly one host");
}

function invalid(detail: string): ProxyError {
  return new ProxyError("request_invalid", { detail });
}
