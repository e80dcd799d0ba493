/**
 * The interface of a provider's format: how requests are read and printed, and how model and usage are found in
 * responses.
 */
import type { JsonObject } from "../json.ts";
import type { Facts } from "../usage.ts";

export type FormatName = "Completions" | "Messages";

export interface LlmRequest {
  readonly body: JsonObject;
  /** undefined when the client named no model. */
  readonly model: string | undefined;
  readonly streaming: boolean;
}

export interface Format {
  readonly name: FormatName;
  /** @throws ProxyError llm_request_invalid when the body does not have the shape of this format */
  parse(body: JsonObject): LlmRequest;
  /** Returns the bytes to send. */
  print(body: JsonObject): Buffer;
  /** Returns model and usage of a complete response. */
  usage(answer: JsonObject): Facts;
  /**
   * Merges one event of a stream into `facts`.
   * @returns true when the event has added something
   */
  stream(event: JsonObject, facts: Facts): boolean;
}

/**
 * Tests cheaply whether the data of an event may hold a member `usage` that is not null. Escapes can hide the key
 * (`"us\u0061ge"`), so data with any unicode escape counts as well; no other notation can hide it.
 * @param data as latin1
 */
export function mayCarryUsage(data: string): boolean {
  for (let at = data.indexOf("usage"); at !== -1; at = data.indexOf("usage", at + 5)) {
    if (!data.startsWith('":null', at + 5)) return true;
  }
  return data.includes("\\u");
}
