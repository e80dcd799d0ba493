/**
 * The interface of a prompt guard: a compiled check of the texts of a request or an answer. Each kind of guard
 * implements it (table in index.ts); run.ts applies the verdicts.
 */
import type { GuardResponse } from "../../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import type { HeaderList } from "../../../lib/header-list.ts";
import type { BackendDeps } from "../../backends/handler.ts";
import type { MaybePromise, RoutedExchange } from "../../exchange/exchange.ts";
import type { FlatMessage, GuardedText, GuardScope } from "../formats/guarded-text.ts";
import type { JsonObject } from "../shared/json.ts";
import type { GuardPhase } from "../../exchange/guard-checks.ts";

/** Services that guards may call, and the log. */
export type GuardDeps = Pick<BackendDeps, "callout" | "hostCallout" | "expression" | "log" | "owner">;

/** What a guard looks at. */
export interface GuardInput {
  readonly phase: GuardPhase;
  readonly exchange: RoutedExchange;
  /** The texts within the scope of the guard. */
  readonly texts: readonly GuardedText[];
  /** Returns the messages of the request in their flat form. */
  messages(): readonly FlatMessage[];
  /** Returns one text for each candidate answer. */
  choices(): readonly GuardedText[];
  /** Headers of the provider's answer; undefined for requests. */
  readonly answerHeaders: HeaderList | undefined;
  /** The body of the request in the client's format; undefined for answers. */
  readonly request: JsonObject | undefined;
}

/** The reply of a service that rejects; undefined members come from the configuration of the guard. */
export interface Rejection {
  readonly status: number;
  readonly body: string;
}

export type Verdict =
  | { readonly action: "pass" }
  | { readonly action: "mask"; readonly changes: readonly MaskedText[] }
  /** Writes messages in place of all messages of a request. */
  | { readonly action: "replace"; readonly messages: readonly FlatMessage[] }
  /** `rejection` is undefined when the guard's own response is sent. */
  | { readonly action: "reject"; readonly rejection: Rejection | undefined };

interface MaskedText {
  readonly text: GuardedText;
  readonly masked: string;
}

export const PASS: Verdict = { action: "pass" };
export const REJECT: Verdict = { action: "reject", rejection: undefined };

/**
 * Checks texts.
 * @throws CalloutError when the service cannot be asked or its answer is unusable, ProxyError when the guard is at fault
 */
export type Check = (input: GuardInput) => MaybePromise<Verdict>;

export interface Guard {
  /** Name of the kind in the API. */
  readonly kind: string;
  readonly scopes: ReadonlySet<GuardScope>;
  /** Whether verdicts are only recorded. */
  readonly isAudit: boolean;
  /** Whether the text passes when the service fails. */
  readonly failOpen: boolean;
  readonly response: GuardResponse;
  readonly check: Check;
}
