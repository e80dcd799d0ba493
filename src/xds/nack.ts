/**
 * Encodes the resources that a data plane refused as text in `error_detail.message` of a NACK: one JSON object per line
 * and resource, so that the controller can name the object that caused it. The client writes it, the server reads it.
 */
import type { ResourceType } from "../ir/resource.ts";

export interface RejectedResource {
  readonly type: ResourceType;
  readonly key: string;
  readonly reason: string;
}

export function encodeNack(refused: readonly RejectedResource[]): string {
  return refused.map(({ type, key, reason }) => JSON.stringify({ type, key, reason })).join("\n");
}

/**
 * Decodes the message of a NACK.
 * @param type type of the response that is answered
 * @param keys names of the resources in that response
 * @returns the refused resources among them. A message that names none of them, as another client may write it, refuses
 * all: a resource must not count as acknowledged when its state is unknown.
 */
export function decodeNack(message: string, type: ResourceType, keys: readonly string[]): RejectedResource[] {
  const known = new Set(keys);
  const refused: RejectedResource[] = [];
  for (const line of message.split("\n")) {
    const entry = parseLine(line);
    if (entry !== undefined && entry.type === type && known.has(entry.key)) {
      refused.push({ type, key: entry.key, reason: entry.reason });
    }
  }
  return refused.length > 0 ? refused : keys.map((key) => ({ type, key, reason: message }));
}

function parseLine(line: string): { type: string; key: string; reason: string } | undefined {
  let value: unknown;
  try {
    value = JSON.parse(line);
  } catch {
    return undefined;
  }
  if (typeof value !== "object" || value === null) return undefined;
  const { type, key, reason } = value as Readonly<Record<string, unknown>>; // every object can be destructured
  if (typeof type !== "string" || typeof key !== "string" || typeof reason !== "string") return undefined;
  return { type, key, reason };
}
