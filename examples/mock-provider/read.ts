/** Strict reading of request bodies: whatever a real provider would refuse is refused with a reason. */
import type { IncomingMessage } from "node:http";

export class BadRequest extends Error {
  readonly status: number;
  constructor(message: string, status = 400) {
    super(message);
    this.status = status;
  }
}

const MAX_BODY_BYTES = 4 * 1024 * 1024;

export type Fields = Readonly<Record<string, unknown>>;

export async function readBody(request: IncomingMessage): Promise<Fields> {
  if (!/^application\/json\b/i.test(request.headers["content-type"] ?? ""))
    throw new BadRequest("content-type must be application/json", 415);
  if (request.headers["content-encoding"] !== undefined) throw new BadRequest("packed bodies are not taken", 415);
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > MAX_BODY_BYTES) throw new BadRequest("the body is too large", 413);
    chunks.push(chunk);
  }
  let body: unknown;
  try {
    body = JSON.parse(Buffer.concat(chunks).toString("utf8"));
  } catch {
    throw new BadRequest("the body is not JSON");
  }
  return fields(body, "the body");
}

export function fields(value: unknown, what: string): Fields {
  if (typeof value !== "object" || value === null || Array.isArray(value))
    throw new BadRequest(`${what} must be an object`);
  return value as Fields;
}

export function text(value: unknown, what: string): string {
  if (typeof value !== "string" || value === "") throw new BadRequest(`${what} must be a text`);
  return value;
}

export function list(value: unknown, what: string): readonly unknown[] {
  if (!Array.isArray(value) || value.length === 0) throw new BadRequest(`${what} must be a list with members`);
  return value;
}

export function count(value: unknown, what: string): number {
  if (typeof value !== "number" || !Number.isInteger(value) || value < 1)
    throw new BadRequest(`${what} must be a positive integer`);
  return value;
}

export function flag(value: unknown, what: string): boolean {
  if (value !== undefined && value !== null && typeof value !== "boolean")
    throw new BadRequest(`${what} must be true or false`);
  return value === true;
}

export function noOther(body: Fields, allowed: ReadonlySet<string>): void {
  for (const name of Object.keys(body)) if (!allowed.has(name)) throw new BadRequest(`unknown field: ${name}`);
}
