/**
 * Writes the head of an HTTP/1.1 request as text and decides the framing of its body (RFC 9112 §6). `Http1Call` uses
 * it. It replaces the framing fields of the client and refuses characters that would end a line early (request
 * splitting).
 */
import { ProxyError } from "../../exchange/errors.ts";
import { encodeFieldValue, isRequestTarget } from "../../exchange/fields.ts";
import type { UpstreamRequest } from "../upstream.ts";

const LENGTH = /^[0-9]{1,15}$/;

/** @returns `framing`: length of a streamed body in bytes, or -1 when the body is sent in chunks */
export function encodeHead(request: UpstreamRequest): { text: string; framing: number } {
  const { raw, spelling } = request.headers;
  const { body, method } = request;
  if (!isRequestTarget(request.path)) throw invalid("the path holds a character that cannot be sent");
  let text = `${method} ${request.path} HTTP/1.1\r\n`;
  let declared = -1;
  for (let at = 0; at < raw.length; at += 2) {
    const name = raw[at] as string;
    const value = raw[at + 1] as string;
    if (name.length === 14 && name.toLowerCase() === "content-length") {
      if (LENGTH.test(value)) declared = Number(value);
    } else if (name.length !== 17 || name.toLowerCase() !== "transfer-encoding") {
      const sentName = spelled(name, spelling);
      text += `${sentName}: ${encoded(sentName, value)}\r\n`;
    }
  }
  let framing = 0;
  if (body === null) {
    if (method === "POST" || method === "PUT" || method === "PATCH")
      text += `${spelled("content-length", spelling)}: 0\r\n`;
  } else if (Buffer.isBuffer(body)) text += `${spelled("content-length", spelling)}: ${body.length}\r\n`;
  else {
    framing = declared;
    text +=
      declared >= 0
        ? `${spelled("content-length", spelling)}: ${declared}\r\n`
        : `${spelled("transfer-encoding", spelling)}: chunked\r\n`;
  }
  const { upgrade } = request;
  if (upgrade !== undefined)
    text += `${spelled("connection", spelling)}: upgrade\r\n${spelled("upgrade", spelling)}: ${upgrade}\r\n`;
  return { text: `${text}\r\n`, framing };
}

/** @param spelling maps lower-case names to the client's spelling, where that has to be preserved */
function spelled(name: string, spelling: ReadonlyMap<string, string> | undefined): string {
  return spelling?.get(name) ?? name;
}

function encoded(name: string, value: string): string {
  const text = encodeFieldValue(value);
  if (text === undefined) throw invalid(`header ${name} holds a control character`);
  return text;
}

function invalid(detail: string): ProxyError {
  return new ProxyError("internal", { detail });
}
