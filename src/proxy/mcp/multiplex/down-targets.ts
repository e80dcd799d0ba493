/**
 * Targets that could not be reached a moment ago. Where targets that fail are left out, requests to all of them do not
 * wait for such a target again and again (`fan-out.ts`). Only failures that do not depend on the caller count, so that
 * no client can make a target look down to others.
 */
import { ProxyError, type ProxyErrorCode } from "../../exchange/errors.ts";
import { McpError } from "../mcp-error.ts";

/** Time for which a target is left out. */
const DOWN_MS = 5_000;

const DOWN: ReadonlySet<ProxyErrorCode> = new Set<ProxyErrorCode>([
  "connect_timeout",
  "upstream_unreachable",
  "endpoint_unavailable",
]);

export class DownTargets {
  /** By name of the target: when it is asked again. */
  readonly #untilMs = new Map<string, number>();
  readonly #nowMs: () => number;

  constructor(nowMs: () => number = () => performance.now()) {
    this.#nowMs = nowMs;
  }

  isDown({ name }: { readonly name: string }): boolean {
    return this.#nowMs() < (this.#untilMs.get(name) ?? 0);
  }

  failed({ name }: { readonly name: string }, error: unknown): void {
    const isSilent = error instanceof SilentTarget;
    const cause = error instanceof McpError ? error.cause : undefined;
    if (isSilent || (cause instanceof ProxyError && DOWN.has(cause.code)))
      this.#untilMs.set(name, this.#nowMs() + DOWN_MS);
  }

  answered({ name }: { readonly name: string }): void {
    this.#untilMs.delete(name);
  }
}

/** A target said nothing for too long. */
export class SilentTarget extends McpError {}
