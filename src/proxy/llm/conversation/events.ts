/**
 * A streamed answer in neutral terms. The provider's format reads each of its events into any number of these, the
 * client's format prints them.
 *
 * Order: one `start`; for each part `open`, its deltas, `close`; `stop` for each choice; `usage` at any time, the last
 * one counts. An `error` ends the stream. Parts are numbered per choice in the order in which they open. Parts of one
 * choice can overlap only when they are calls.
 */
import type { Usage } from "../shared/usage.ts";
import type { Stop } from "./answer.ts";
import type { Citation, Signature, VendorPart } from "./conversation.ts";

export type AnswerEvent =
  | { readonly kind: "start"; readonly id: string; readonly model: string }
  | ({ readonly kind: "open"; readonly opened: OpenedPart } & Place)
  | DeltaEvent
  /** Signs a text, reasoning or call part that is still open. */
  | ({ readonly kind: "signature"; readonly signature: Signature } & Place)
  | ({ readonly kind: "citation"; readonly citation: Citation } & Place)
  | ({ readonly kind: "close" } & Place)
  | { readonly kind: "usage"; readonly usage: Usage; readonly serviceTier?: string }
  | { readonly kind: "stop"; readonly choice: number; readonly stop: Stop }
  | { readonly kind: "error"; readonly error: VendorError };

/** Text of a text, reasoning or refusal part, or JSON text of a call's arguments. */
export type DeltaEvent = { readonly kind: "delta"; readonly text: string } & Place;

interface Place {
  /** Index of the choice. */
  readonly choice: number;
  /** Number of the part in its choice. */
  readonly part: number;
}

export type OpenedPart =
  | { readonly kind: "text" | "reasoning" | "refusal" }
  /** Has no deltas. */
  | { readonly kind: "redacted"; readonly data: Signature }
  | {
      readonly kind: "call";
      readonly id: string;
      readonly name: string;
      readonly isFreeText?: boolean;
      readonly isServerSide?: boolean;
      /** A signature that is known before the arguments. */
      readonly signature?: Signature;
    }
  /** Has no deltas. */
  | VendorPart;

/** An error in the words of the provider. */
export interface VendorError {
  readonly message: string;
  /** Type in the words of OpenAI and Anthropic, such as `rate_limit_error`; undefined when only the status tells. */
  readonly type: string | undefined;
  /** Code for programs, such as `context_length_exceeded` or the status of Google. */
  readonly code?: string;
}
