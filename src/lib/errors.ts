/**
 * The one base of every error that this program throws on purpose. `code` is API: it appears in metric labels and
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

/** What a person can read of any thrown value, without a stack. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** A start that cannot go on: one line on stderr and the exit code. */
export class FatalError extends GwError {
  readonly code = "fatal";
  readonly exitCode: number;

  constructor(message: string, exitCode = 1, cause?: unknown) {
    super(message, { cause });
    this.exitCode = exitCode;
  }
}

/** A resource that a compiler or decoder refuses. Caught per resource; the last good version stays. */
export class ConfigError extends GwError {
  readonly code = "config_invalid";
}

/** A watch, a read or a write that failed at the rim; retried by its owner. */
export class SourceError extends GwError {
  readonly code = "source_failed";
}
