/**
 * Usage of LLM requests in tokens, and the ledger that charges it. Counts are normalised so that providers are
 * comparable: input includes tokens read from and written to a cache. Every token budget is charged exactly once,
 * however the request ends, because the end of the exchange settles the ledger too.
 */
import { Duration } from "../../cel/values.ts";
import type { RoutedExchange } from "../exchange/exchange.ts";

export interface Usage {
  /** Includes cached tokens. */
  inputTokens: number;
  outputTokens: number;
  cachedInputTokens?: number;
  cacheCreationInputTokens?: number;
  reasoningTokens?: number;
  /** Parts of the input and of the output by kind, where the provider splits them. */
  inputTextTokens?: number;
  inputAudioTokens?: number;
  inputImageTokens?: number;
  outputTextTokens?: number;
  outputAudioTokens?: number;
  outputImageTokens?: number;
  /** Counts as the provider reported them. */
  providerInputTokens?: number;
  providerTotalTokens?: number;
}

/** Model and usage that a response reports; filled step by step while a stream runs. */
export interface Facts {
  model?: string;
  usage?: Usage;
  serviceTier?: string;
}

/** The request in expressions and telemetry. */
export interface LlmRequestFacts {
  readonly requestModel: string;
  readonly provider: string;
  readonly streaming: boolean;
  /** Shown as `llm.params`. */
  readonly params?: Readonly<Record<string, unknown>>;
}

export interface Ledger {
  /** Called for each event of a stream; the first call counts as the time of the first token. */
  flowing(): void;
  /** Publishes the facts about the response that are known so far. */
  record(facts: Facts): void;
  /** Charges the budgets; only the first call has an effect. */
  settle(): void;
}

/**
 * Admits the request to every token budget and opens its ledger.
 * @throws ProxyError rate_limited when a budget is used up; rate_limit_failed when one cannot be asked. The budgets
 * that have admitted the request are then settled with 0.
 */
export async function openLedger(exchange: RoutedExchange, request: LlmRequestFacts): Promise<Ledger> {
  const admitted: RoutedExchange["tokenGates"] = [];
  let facts: Facts = {};
  let settled = false;
  let firstAtMs: number | undefined;

  const publish = (): void => {
    const root = rootOf(request, facts);
    if (firstAtMs !== undefined) addTimes(root, { startedAtMs: exchange.startedAtMs, firstAtMs, facts });
    exchange.setRoot("llm", root);
  };
  const settle = (): void => {
    if (settled) return;
    settled = true;
    const total = facts.usage === undefined ? 0 : facts.usage.inputTokens + facts.usage.outputTokens;
    for (const gate of admitted) gate.settle(total);
  };

  publish();
  // The client can leave at any moment, also before the upstream responds: the end of the exchange always settles.
  exchange.onDone(settle);
  for (const gate of exchange.tokenGates) {
    const waiting = gate.admit();
    if (waiting instanceof Promise) await waiting;
    admitted.push(gate);
  }
  return {
    flowing() {
      firstAtMs ??= performance.now();
    },
    record(next) {
      facts = next;
      if (!settled) publish();
    },
    settle,
  };
}

/** Adds the timing of a stream, as far as it has arrived. */
function addTimes(
  root: Record<string, unknown>,
  { startedAtMs, firstAtMs, facts }: { startedAtMs: number; firstAtMs: number; facts: Facts },
): void {
  root["timeToFirstToken"] = Duration.ofMilliseconds(firstAtMs - startedAtMs);
  const tokens = facts.usage?.outputTokens ?? 0;
  if (tokens > 0) root["timePerOutputToken"] = Duration.ofMilliseconds((performance.now() - firstAtMs) / tokens);
}

function rootOf(request: LlmRequestFacts, { model, usage, serviceTier }: Facts): Record<string, unknown> {
  const root: Record<string, unknown> = { ...request, ...usage };
  if (model !== undefined) root["responseModel"] = model;
  if (serviceTier !== undefined) root["serviceTier"] = serviceTier;
  if (usage !== undefined) root["totalTokens"] = usage.inputTokens + usage.outputTokens;
  return root;
}
