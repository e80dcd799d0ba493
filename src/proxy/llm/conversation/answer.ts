/**
 * A complete answer in neutral terms: the provider's format reads a body into it, the client's format prints it.
 * events.ts has the same content as a stream.
 */
import type { Facts } from "../shared/usage.ts";
import type { Part } from "./conversation.ts";

export interface Answer {
  /** As the provider gave it, or made by the reader. */
  readonly id: string;
  readonly model: string;
  readonly choices: readonly Choice[];
  /** Model, usage and service tier as they go to the ledger. */
  readonly facts: Facts;
}

export interface Choice {
  readonly index: number;
  readonly parts: readonly Part[];
  readonly stop: Stop;
}

export interface Stop {
  readonly reason: StopReason;
  /** The sequence that stopped the answer. */
  readonly sequence?: string;
}

/**
 * Why an answer ended: by itself, at a stop sequence, at the limit of tokens, at the end of the context window, for
 * calls of tools, by a filter or a refusal, or because a turn of tools that the provider runs is paused.
 */
export type StopReason = "end" | "stop_sequence" | "length" | "context" | "calls" | "refusal" | "pause";
