/** The shape of a wire format: how a request of it is read and printed, and what its answers say about themselves. */
import type { JsonObject } from "../json.ts";
import type { Facts } from "../usage.ts";

export type FormatName = "Completions" | "Messages";

export interface LlmRequest {
  readonly body: JsonObject;
  /** undefined when the client named none. */
  readonly model: string | undefined;
  readonly streaming: boolean;
}

export interface Format {
  readonly name: FormatName;
  /** @throws ProxyError llm_request_invalid when the body has not the shape of this format */
  parse(body: JsonObject): LlmRequest;
  /** The bytes that go on the wire. */
  print(body: JsonObject): Buffer;
  /** Model and usage of a complete answer. */
  usage(answer: JsonObject): Facts;
  /**
   * Folds one event of a stream into what is known.
   * @returns true when something was learned
   */
  stream(event: JsonObject, facts: Facts): boolean;
}

/**
 * True when the data of an event may hold a non-null member `usage`. A key can be written with escapes
 * (`"us\u0061ge"`), so data with a unicode escape counts as well; nothing else can hide the word.
 * @param data as latin1
 */
export function mayCarryUsage(data: string): boolean {
  for (let at = data.indexOf("usage"); at !== -1; at = data.indexOf("usage", at + 5)) {
    if (!data.startsWith('":null', at + 5)) return true;
  }
  return data.includes("\\u");
}
