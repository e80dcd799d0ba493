/**
 * What a request cost and who answered it. Counts are normalised so that all providers compare: input includes
 * tokens read from and written to a cache. Charges every token budget exactly once, whatever way the request ends.
 */
import { Duration } from "../../cel/values.ts";
import type { RoutedExchange } from "../pipeline/exchange.ts";

export interface Usage {
  /** Cached tokens included. */
  inputTokens: number;
  outputTokens: number;
  cachedInputTokens?: number;
  cacheCreationInputTokens?: number;
  reasoningTokens?: number;
  /** As the provider wrote them. */
  providerInputTokens?: number;
  providerTotalTokens?: number;
}

/** What an answer says about itself. Filled bit by bit while a stream runs. */
export interface Facts {
  model?: string;
  usage?: Usage;
}

/** Identity of one LLM request as expressions and telemetry see it. */
export interface LlmRequestFacts {
  readonly requestModel: string;
  readonly provider: string;
  readonly streaming: boolean;
  /** As `llm.params` shows them. */
  readonly params?: Readonly<Record<string, unknown>>;
}

export interface Ledger {
  /** An event of a stream is here: the first one is taken for its first token. */
  flowing(): void;
  /** Publishes what is known about the answer so far. */
  record(facts: Facts): void;
  /** Charges the budgets; later calls do nothing. */
  settle(): void;
}

/**
 * Admits the request to every token budget and opens its books.
 * @throws ProxyError rate_limited when a budget is used up, rate_limit_failed when one cannot be asked; budgets that had admitted it are settled with 0
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
  // The client may go away at any moment, also before the upstream answers: the end of the exchange always settles.
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

/** Of a stream, as far as it has come. */
function addTimes(
  root: Record<string, unknown>,
  { startedAtMs, firstAtMs, facts }: { startedAtMs: number; firstAtMs: number; facts: Facts },
): void {
  root["timeToFirstToken"] = Duration.ofMilliseconds(firstAtMs - startedAtMs);
  const tokens = facts.usage?.outputTokens ?? 0;
  if (tokens > 0) root["timePerOutputToken"] = Duration.ofMilliseconds((performance.now() - firstAtMs) / tokens);
}

function rootOf(request: LlmRequestFacts, { model, usage }: Facts): Record<string, unknown> {
  const root: Record<string, unknown> = { ...request, ...usage };
  if (model !== undefined) root["responseModel"] = model;
  if (usage !== undefined) root["totalTokens"] = usage.inputTokens + usage.outputTokens;
  return root;
}
