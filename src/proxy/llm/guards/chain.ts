/**
 * Runs prompt guards on one body, in the order of the configuration. The first rejection ends the request; a mask is
 * written before the next guard looks. run.ts uses it for requests and whole answers, window.ts for streams.
 */
import type { GuardResponse } from "../../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import type { HeaderList } from "../../../lib/header-list.ts";
import { CalloutError } from "../../callouts/callout.ts";
import { ProxyError } from "../../exchange/errors.ts";
import type { RoutedExchange } from "../../exchange/exchange.ts";
import { GuardChecks, type GuardOutcome, type GuardPhase } from "../../exchange/guard-checks.ts";
import type { GuardedText } from "../formats/guarded-text.ts";
import type { JsonObject } from "../shared/json.ts";
import type { Guard, GuardInput, Rejection, Verdict } from "./guard.ts";

/** The texts of one body, and what can be done with it. */
export interface GuardedBody {
  readonly exchange: RoutedExchange;
  texts(): readonly GuardedText[];
  messages(): ReturnType<GuardInput["messages"]>;
  choices(): readonly GuardedText[];
  readonly answerHeaders: HeaderList | undefined;
  readonly request: JsonObject | undefined;
  /** Carries out a mask. Streams ignore it, and a message that cannot be changed is rejected in its place. */
  readonly onMask: ((verdict: Mask) => void) | "ignore" | "reject";
}

export type Mask = Extract<Verdict, { readonly action: "mask" | "replace" }>;

export type GuardResult =
  | { readonly rejected: false; readonly isMasked: boolean }
  | { readonly rejected: true; readonly response: GuardResponse; readonly rejection: Rejection | undefined };

export class GuardChain {
  readonly #guards: readonly Guard[];
  readonly #phase: GuardPhase;

  constructor(guards: readonly Guard[], phase: GuardPhase) {
    this.#guards = guards;
    this.#phase = phase;
  }

  /** Tells whether a guard looks at texts of this scope. */
  reads(scope: GuardedText["scope"]): boolean {
    return this.#guards.some(({ scopes }) => scopes.has(scope));
  }

  /** @throws ProxyError guard_failed, guard_mask_invalid */
  async run(body: GuardedBody): Promise<GuardResult> {
    const { exchange } = body;
    let isMasked = false;
    let texts = body.texts();
    for (const guard of this.#guards) {
      const verdict = await this.#check(guard, body, texts);
      if (verdict === undefined) continue;
      const { action } = verdict;
      if (action === "pass") this.#record(exchange, guard, "Allow");
      else if (guard.isAudit) this.#record(exchange, guard, action === "reject" ? "AuditReject" : "AuditMask");
      else if (action === "reject" || isForbidden(verdict, body)) {
        this.#record(exchange, guard, "Reject");
        const rejection = action === "reject" ? verdict.rejection : undefined;
        return { rejected: true, response: guard.response, rejection };
      } else if (typeof body.onMask === "string") this.#record(exchange, guard, "Allow");
      else {
        body.onMask(verdict);
        this.#record(exchange, guard, "Mask");
        isMasked = true;
        if (action === "replace") texts = body.texts();
      }
    }
    return { rejected: false, isMasked };
  }

  /** @returns undefined when the guard failed and lets the text pass */
  async #check(guard: Guard, body: GuardedBody, texts: readonly GuardedText[]): Promise<Verdict | undefined> {
    const { exchange, answerHeaders, request } = body;
    try {
      return await guard.check({
        phase: this.#phase,
        exchange,
        texts: texts.filter(({ scope }) => guard.scopes.has(scope)),
        messages: () => body.messages(),
        choices: () => body.choices(),
        answerHeaders,
        request,
      });
    } catch (error) {
      if (!isFailure(error)) throw error;
      const isMisconfigured = error instanceof CalloutError && error.misconfigured;
      if (guard.isAudit || (guard.failOpen && error instanceof CalloutError && !isMisconfigured)) {
        this.#record(exchange, guard, "FailOpen");
        return undefined;
      }
      this.#record(exchange, guard, "Reject");
      throw error instanceof ProxyError ? error : failed(guard, error);
    }
  }

  #record(exchange: RoutedExchange, { kind }: Guard, outcome: GuardOutcome): void {
    (exchange.guardChecks ??= new GuardChecks()).add(this.#phase, kind, outcome);
  }
}

/** A client that has gone and a deadline that has passed end the request; no failure mode applies to them. */
function isFailure(error: unknown): error is CalloutError | ProxyError {
  if (error instanceof CalloutError) return true;
  return error instanceof ProxyError && (error.code === "guard_failed" || error.code === "guard_mask_invalid");
}

function failed({ kind }: Guard, error: CalloutError): ProxyError {
  return new ProxyError("guard_failed", { detail: `${kind}: ${error.detail ?? error.message}`, cause: error });
}

/** Tells whether a mask would change what cannot be changed. */
function isForbidden(verdict: Mask, { onMask, messages }: GuardedBody): boolean {
  if (verdict.action === "mask") return onMask === "reject" || verdict.changes.some(({ text }) => text.isSigned);
  if (onMask !== "reject") return false;
  // A service may answer with all messages although it has changed none.
  const given = messages();
  return verdict.messages.some(({ role, content }, at) => role !== given[at]?.role || content !== given[at].content);
}
