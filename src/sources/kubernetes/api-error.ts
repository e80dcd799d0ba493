/**
 * The Status object with which a Kubernetes API server refuses a request, as an error. Every client in this folder uses
 * it.
 */
import { SourceError } from "../../lib/errors.ts";

/** One cause from the details of a Status: what is wrong with which field. */
export interface ApiCause {
  /** Reason such as "FieldValueInvalid". */
  readonly reason: string;
  readonly message: string;
  /** Field path such as "spec.rules[0].name". */
  readonly field: string;
}

export class ApiError extends SourceError {
  /** HTTP status; 0 when there was no answer. */
  readonly status: number;
  /** Reason such as "NotFound", "Conflict", "Expired" or "Invalid"; "" when the answer was not a Status object. */
  readonly reason: string;
  readonly causes: readonly ApiCause[];
  /** Message of the server; "" when the answer was not a Status object. */
  readonly words: string;

  constructor(message: string, options: ApiErrorOptions) {
    super(message, { cause: options.cause });
    this.status = options.status;
    this.reason = options.reason ?? "";
    this.causes = options.causes ?? [];
    this.words = options.words ?? "";
  }
}

export interface ApiErrorOptions {
  readonly status: number;
  readonly reason?: string;
  readonly causes?: readonly ApiCause[];
  readonly words?: string;
  readonly cause?: unknown;
}

/** Reads a Status object, from the body of an error response or from an ERROR event of a watch. */
export function apiErrorOf(status: unknown, request: string, httpStatus: number): ApiError {
  const { code, message, reason, details } = (typeof status === "object" && status !== null ? status : {}) as {
    code?: unknown;
    message?: unknown;
    reason?: unknown;
    details?: { causes?: unknown } | null;
  }; // every member is checked below
  return new ApiError(`${request}: ${typeof message === "string" ? message : `HTTP ${httpStatus}`}`, {
    status: typeof code === "number" ? code : httpStatus,
    reason: typeof reason === "string" ? reason : "",
    words: typeof message === "string" ? message : "",
    causes: Array.isArray(details?.causes) ? details.causes.flatMap(causeOf) : [],
  });
}

function causeOf(value: unknown): ApiCause[] {
  const { reason, message, field } = (typeof value === "object" && value !== null ? value : {}) as {
    reason?: unknown;
    message?: unknown;
    field?: unknown;
  }; // every member is checked below
  if (typeof message !== "string") return [];
  return [{ message, reason: text(reason), field: text(field) }];
}

function text(value: unknown): string {
  return typeof value === "string" ? value : "";
}

export function isStatus(error: unknown, status: number): boolean {
  return error instanceof ApiError && error.status === status;
}

/**
 * Replaces the error of a rejected Secret. The response may repeat the values that were sent, which must not reach a log
 * or status.
 */
export function withoutValues(error: unknown): unknown {
  if (!(error instanceof ApiError) || error.status !== 422) return error;
  return new ApiError("the API server refuses the Secret as invalid", { status: error.status, reason: error.reason });
}
