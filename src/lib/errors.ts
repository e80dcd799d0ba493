/**
 * The base class of every error that this program throws on purpose. `code` is API: it appears in metric labels and
 * documentation and is never renamed. `message` is for people; `detail` stays in logs and never reaches a client.
 */
export abstract class GwError extends Error {
  abstract readonly code: string;
  readonly detail: string | undefined;

  constructor(message: string, options: { detail?: string; cause?: unknown } = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = new.target.name;
    this.detail = options.detail;
  }
}

export function isGwError(error: unknown): error is GwError {
  return error instanceof GwError;
}

/** Returns the message of any thrown value, without a stack. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** Ends a start that cannot continue, with one line on stderr and the exit code. */
export class FatalError extends GwError {
  readonly code = "fatal";
  readonly exitCode: number;

  constructor(message: string, exitCode = 1, cause?: unknown) {
    super(message, { cause });
    this.exitCode = exitCode;
  }
}

/** Rejects a resource in a compiler or decoder. The caller catches it per resource and keeps the last good version. */
export class ConfigError extends GwError {
  readonly code = "config_invalid";
}

/** Reports a failed watch, read or write of a source; its owner retries. */
export class SourceError extends GwError {
  readonly code = "source_failed";
}

/** Describes an error for operators, with the detail that clients do not receive. */
export function describeError({ message, detail }: { message: string; detail: string | undefined }): string {
  return detail === undefined || detail === "" ? message : `${message}: ${detail}`;
}
