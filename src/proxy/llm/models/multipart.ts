/**
 * Finds the field `model` in a multipart/form-data body (RFC 7578), and writes another name in its place. The handler of
 * models uses it for requests with files, such as edits of images; all other bytes stay as they came.
 *
 * The provider reads the body again, so whatever two readers could understand differently is refused: two fields of that
 * name, a field that is a file, and names in an extended notation.
 */
import { invalidRequest } from "../shared/request-fields.ts";

export interface MultipartModel {
  readonly name: string;
  /** Returns the body with another name of the model. */
  rename(name: string): Buffer;
}

const TYPE = /^multipart\/form-data\s*;/i;
const BOUNDARY = /;\s*boundary=(?:"([^"\\]{1,70})"|([^\s;"]{1,70}))\s*(?:;|$)/i;
const DISPOSITION = /^content-disposition\s*:(.*)$/im;
const NAME = /;\s*name\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s;"]+))/gi;
const EXTENDED = /;\s*(?:file)?name\*/i;
const FILE = /;\s*filename\s*=/i;
const END_OF_HEAD = "\r\n\r\n";
/** Longest head of a part; one that is longer is no real client's. */
const MAX_HEAD = 16 * 1024;

export function isMultipart(contentType: string): boolean {
  return TYPE.test(contentType);
}

/**
 * @returns undefined when no field is named `model`
 * @throws ProxyError llm_request_invalid for a body that is not multipart, or not clear
 */
export function findModelField(body: Buffer, contentType: string): MultipartModel | undefined {
  const [, quoted, plain] = BOUNDARY.exec(contentType) ?? [];
  const boundary = quoted ?? plain;
  if (boundary === undefined) throw invalidRequest("Content-Type names no boundary");
  let found: { readonly start: number; readonly end: number } | undefined;
  for (const { head, start, end } of partsOf(body, `--${boundary}`)) {
    const disposition = DISPOSITION.exec(head.replaceAll(/\r\n[ \t]+/g, " "))?.[1] ?? "";
    if (EXTENDED.test(disposition)) throw invalidRequest("a part of the body has a name in an extended notation");
    const names = [...disposition.matchAll(NAME)].map(([, text, token]) => text ?? token);
    if (!names.includes("model")) continue;
    if (found !== undefined || names.length > 1 || FILE.test(disposition))
      throw invalidRequest("the field model must be in the body once, as a text");
    found = { start, end };
  }
  if (found === undefined) return undefined;
  const { start, end } = found;
  return {
    name: body.toString("utf8", start, end),
    rename: (name) => Buffer.concat([body.subarray(0, start), Buffer.from(name), body.subarray(end)]),
  };
}

interface Part {
  readonly head: string;
  /** Place of its content in the body. */
  readonly start: number;
  readonly end: number;
}

/** @throws ProxyError llm_request_invalid */
function* partsOf(body: Buffer, delimiter: string): Generator<Part> {
  let at = body.indexOf(delimiter);
  // What stands in front of the first part is skipped by readers, and a delimiter begins a line.
  if (at > 0 && body.toString("latin1", at - 2, at) !== "\r\n") throw notMultipart();
  while (at !== -1) {
    const after = at + delimiter.length;
    if (body.toString("latin1", after, after + 2) === "--") return;
    const line = /^[ \t]*\r\n/.exec(body.toString("latin1", after, after + 64))?.[0];
    if (line === undefined) throw notMultipart();
    // A part without a head begins with the empty line at once.
    const headStart = after + line.length - 2;
    const headEnd = body.indexOf(END_OF_HEAD, headStart);
    if (headEnd === -1 || headEnd - headStart > MAX_HEAD) throw notMultipart();
    const start = headEnd + END_OF_HEAD.length;
    const end = body.indexOf(`\r\n${delimiter}`, start - 2);
    if (end === -1) throw notMultipart();
    yield { head: body.toString("utf8", headStart + 2, headEnd), start, end: Math.max(start, end) };
    at = end + 2;
  }
  throw notMultipart();
}

function notMultipart(): Error {
  return invalidRequest("the body is not in the form that Content-Type names");
}
