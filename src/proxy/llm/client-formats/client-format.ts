/** The shape of a client format: the paths that its clients call, how it is served, and how it writes an error. */
import type { Format } from "../formats/format.ts";
import type { JsonObject } from "../json.ts";

/** An error that a policy or the gateway itself answers with. */
interface ClientError {
  readonly status: number;
  readonly message: string;
  /** A code that programs can compare; null where the status says enough. */
  readonly code: string | null;
}

/** Writes the body of an error answer. */
export type ErrorPrinter = (error: ClientError) => JsonObject;

export interface ClientFormat {
  readonly name: string;
  /** Tested against the path without its query. */
  readonly path: RegExp;
  readonly printError: ErrorPrinter;
  /** Reads the requests of this format; undefined while requests of it are answered with 501. */
  readonly format: Format | undefined;
}
