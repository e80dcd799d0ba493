/** The shape of a translation between the format a client speaks and the one its provider speaks. */
import type { JsonObject } from "../json.ts";

export interface Converter {
  /**
   * @param body in the client's format, model included
   * @returns the provider's body and the names of the client's fields that it cannot express
   * @throws ProxyError llm_request_invalid
   */
  request(body: JsonObject): { readonly body: JsonObject; readonly dropped: readonly string[] };
  /** A complete answer. @param createdAt Unix seconds @throws ProxyError response_invalid */
  response(answer: JsonObject, createdAt: number): JsonObject;
  /** An error answer of the provider, of any shape. The status stays. */
  error(body: Buffer, status: number): JsonObject;
  /** @param createdAt Unix seconds */
  stream(createdAt: number): StreamConverter;
}

export interface StreamConverter {
  /**
   * One event of the provider.
   * @returns data of the client's events, in order
   */
  event(event: JsonObject): readonly JsonObject[];
  /**
   * The text of an event that is answered by one event which carries the same text, and does nothing else: not to what
   * follows, and not otherwise for another text.
   */
  textOf(event: JsonObject): string | undefined;
  /** `open` until the answer is complete; `failed` after an error event. */
  readonly state: "open" | "complete" | "failed";
  /** Data of the client's closing event after a clean end. */
  readonly farewell: string;
}
