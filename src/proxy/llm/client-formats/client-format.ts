/**
 * The interface of a client format: the paths that its clients call, the parser of its requests, and its form of
 * errors.
 */
import type { ChatFormat } from "../formats/chat-format.ts";
import type { VendorError } from "../conversation/events.ts";
import type { JsonObject } from "../shared/json.ts";

/** Prints the body of an error reply with this HTTP status. */
export type ErrorPrinter = (error: VendorError, status: number) => JsonObject;

export interface ClientFormat {
  readonly name: string;
  /** Is tested against the path without its query. */
  readonly path: RegExp;
  readonly printError: ErrorPrinter;
  /** Reads requests of this format; undefined for a format whose requests get 501. */
  readonly format: ChatFormat | undefined;
}
