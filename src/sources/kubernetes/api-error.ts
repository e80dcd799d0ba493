/** What a Kubernetes API server says when it refuses a request: the Status object, as an error that callers can tell apart. */
import { SourceError } from "../../lib/errors.ts";

export class ApiError extends SourceError {
  /** HTTP status; 0 when there was no answer. */
  readonly status: number;
  /** "NotFound", "Conflict", "Expired", "Invalid", …; "" when the answer was no Status object. */
  readonly reason: string;

  constructor(message: string, options: { status: number; reason?: string; cause?: unknown }) {
    super(message, { cause: options.cause });
    this.status = options.status;
    this.reason = options.reason ?? "";
  }
}

/** Reads a Status object, from the body of a refusal or from an ERROR event of a watch. */
export function apiErrorOf(status: unknown, request: string, httpStatus: number): ApiError {
  const { code, message, reason } = (typeof status === "object" && status !== null ? status : {}) as {
    code?: unknown;
    message?: unknown;
    reason?: unknown;
  }; // every member is checked below
  return new ApiError(`${request}: ${typeof message === "string" ? message : `HTTP ${httpStatus}`}`, {
    status: typeof code === "number" ? code : httpStatus,
    reason: typeof reason === "string" ? reason : "",
  });
}

export function isStatus(error: unknown, status: number): boolean {
  return error instanceof ApiError && error.status === status;
}
