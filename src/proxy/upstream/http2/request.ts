/** Converts the fields of requests, responses and trailers to and from the form of HTTP/2 (RFC 9113 §8.2, §8.3). */
import { ProxyError } from "../../exchange/errors.ts";
import { ROLE, encodeFieldValue, fieldOf, isRequestTarget } from "../../exchange/fields.ts";
import type { UpstreamRequest } from "../upstream.ts";

const LENGTH = /^[0-9]{1,15}$/;

/**
 * @returns `fields`: alternating names and values; `declared`: length of a streamed body, -1 when any length is allowed
 * @throws ProxyError internal for text that cannot be sent
 */
export function encodeFields(
  request: UpstreamRequest,
  scheme: "http" | "https",
): { readonly fields: string[]; readonly declared: number } {
  const { body, headers, method, path } = request;
  if (!isRequestTarget(path)) throw invalid("the path holds a character that cannot be sent");
  const fields = [":method", method, ":scheme", scheme, ":authority", "", ":path", path];
  const authorityAt = 5;
  let declared = -1;
  const { raw } = headers;
  for (let at = 0; at < raw.length; at += 2) {
    const field = fieldOf(raw[at] as string);
    if (field === undefined) throw invalid(`invalid header name ${JSON.stringify(raw[at])}`);
    const value = encoded(field.name, raw[at + 1] as string);
    switch (field.role) {
      case ROLE.host:
        fields[authorityAt] = value;
        break;
      case ROLE.contentLength:
        if (LENGTH.test(value)) declared = Number(value);
        break;
      case ROLE.te:
        if (value === "trailers") fields.push(field.name, value);
        break;
      case ROLE.hop:
      case ROLE.proxyChallenge:
      case ROLE.connection:
      case ROLE.keepAlive:
      case ROLE.transferEncoding:
      case ROLE.upgrade:
        break;
      default:
        fields.push(field.name, value);
    }
  }
  if (Buffer.isBuffer(body)) declared = body.length;
  else if (body === null) declared = method === "POST" || method === "PUT" || method === "PATCH" ? 0 : -1;
  if (declared >= 0) fields.push("content-length", String(declared));
  return { fields, declared };
}

/**
 * Drops the pseudo-header fields of a response. Node has validated it; connection-specific fields cannot occur in
 * HTTP/2.
 */
export function responseFields(raw: readonly string[]): string[] {
  const out: string[] = [];
  for (let at = 0; at < raw.length; at += 2) {
    const name = raw[at] as string;
    if (!name.startsWith(":")) out.push(name, raw[at + 1] as string);
  }
  return out;
}

/** Converts trailers for node; several lines with one name stay several lines. */
export function trailerFields(raw: readonly string[]): Record<string, string | string[]> {
  const fields: Record<string, string | string[]> = {};
  for (let at = 0; at < raw.length; at += 2) {
    const name = (raw[at] as string).toLowerCase();
    const value = raw[at + 1] as string;
    const before = fields[name];
    fields[name] = before === undefined ? value : [...(Array.isArray(before) ? before : [before]), value];
  }
  return fields;
}

function encoded(name: string, value: string): string {
  const text = encodeFieldValue(value);
  if (text === undefined) throw invalid(`header ${name} holds a control character`);
  return text;
}

function invalid(detail: string): ProxyError {
  return new ProxyError("internal", { detail });
}
