/** The interface of a converter between the format of a client and the format of a provider. */
import type { JsonObject } from "../json.ts";

export interface Converter {
  /**
   * @param body in the client's format, model included
   * @returns the provider's body and the names of the client's fields that it cannot express
   * @throws ProxyError llm_request_invalid
   */
  request(body: JsonObject): { readonly body: JsonObject; readonly dropped: readonly string[] };
  /** Converts a complete response. @param createdAt Unix seconds @throws ProxyError response_invalid */
  response(answer: JsonObject, createdAt: number): JsonObject;
  /** Converts an error response of any shape; the status is kept. */
  error(body: Buffer, status: number): JsonObject;
  /** Returns a converter for one stream. @param createdAt Unix seconds */
  stream(createdAt: number): StreamConverter;
}

export interface StreamConverter {
  /**
   * Converts one event of the provider.
   * @returns the data of the client's events, in order
   */
  event(event: JsonObject): readonly JsonObject[];
  /**
   * Returns the text of an event that is translated to a single event with the same text, and whose translation neither
   * depends on the text otherwise nor changes the state of the converter; undefined for every other event
   * (repetition.ts).
   */
  textOf(event: JsonObject): string | undefined;
  /** `open` until the response is complete; `failed` after an error event. */
  readonly state: "open" | "complete" | "failed";
  /** Data of the closing event that the client gets after a clean end. */
  readonly farewell: string;
}
