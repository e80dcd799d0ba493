/**
 * The interface of a client format: the paths that its clients call, the parser of its requests, and its form of
 * errors.
 */
import type { Format } from "../formats/format.ts";
import type { JsonObject } from "../json.ts";

/** An error that a policy or the gateway itself sends. */
interface ClientError {
  readonly status: number;
  readonly message: string;
  /** Code for programs to compare; null when the status is sufficient. */
  readonly code: string | null;
}

/** Prints the body of an error reply. */
export type ErrorPrinter = (error: ClientError) => JsonObject;

export interface ClientFormat {
  readonly name: string;
  /** Is tested against the path without its query. */
  readonly path: RegExp;
  readonly printError: ErrorPrinter;
  /** Reads requests of this format; undefined for a format whose requests get 501. */
  readonly format: Format | undefined;
}
