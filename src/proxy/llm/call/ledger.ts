/**
 * The ledger of one LLM request: it publishes model, usage and cost for expressions and telemetry, and charges the
 * token budgets. Every budget is charged exactly once, however the request ends, because the end of the exchange settles the
 * ledger too. Where a provider reports no usage, or the stream is left before it does, the usage is estimated, so that
 * no client gets around a budget.
 */
import { Duration } from "../../../cel/values.ts";
import type { RoutedExchange } from "../../exchange/exchange.ts";
import type { Catalog } from "../cost/catalog.ts";
import { LOOKUP_STATUS, priceUsage, type Price } from "../cost/price.ts";
import type { Facts, Usage } from "../shared/usage.ts";

/** The request in expressions and telemetry. */
export interface LlmRequestFacts {
  /** Absent where the request names no model that is recognised. */
  readonly requestModel?: string;
  readonly provider: string;
  readonly streaming: boolean;
  /** Shown as `llm.params`. */
  readonly params?: Readonly<Record<string, unknown>>;
}

/** `complete`: the whole answer came. `partial`: some of it may have come. `failed`: the provider has refused. */
export type Ending = "complete" | "partial" | "failed";

export interface Ledger {
  /** Whether the text of the answer has to be counted, because a budget depends on the usage. */
  readonly countsText: boolean;
  /** Called when the request goes to the provider, which may work on it from now on. */
  sent(): void;
  /** Called for each event of a stream; the first call counts as the time of the first token. */
  flowing(): void;
  /** Counts text of the answer. @param bytes in UTF-8 */
  addText(bytes: number): void;
  /** Publishes the facts about the response that are known so far. */
  record(facts: Facts): void;
  /** Charges the budgets; only the first call has an effect. */
  settle(ending: Ending): void;
}

/** Bytes of UTF-8 text that count as one token where the provider reports no usage. */
const BYTES_PER_TOKEN = 4;

/**
 * Admits the request to every token budget and opens its ledger.
 * @param requestBytes measures the text of the request in UTF-8; called only for an estimate
 * @param catalog prices of models; undefined where none is configured
 * @throws ProxyError rate_limited when a budget is used up; rate_limit_failed when one cannot be asked. The budgets
 * that have admitted the request are then settled with 0.
 */
export async function openLedger(
  exchange: RoutedExchange,
  request: LlmRequestFacts,
  requestBytes: () => number,
  catalog?: Catalog,
): Promise<Ledger> {
  const ledger = new ExchangeLedger(exchange, request, { requestBytes, catalog });
  await ledger.admit(exchange.tokenGates);
  return ledger;
}

/** Opens the ledger of a request that no budget pays for. */
export function openFreeLedger(exchange: RoutedExchange, request: LlmRequestFacts): Ledger {
  return new ExchangeLedger(exchange, request, { requestBytes: undefined, catalog: undefined });
}

class ExchangeLedger implements Ledger {
  readonly countsText: boolean;
  readonly #exchange: RoutedExchange;
  readonly #request: LlmRequestFacts;
  /** undefined where usage is not estimated. */
  readonly #requestBytes: (() => number) | undefined;
  readonly #catalog: Catalog | undefined;
  readonly #admitted: RoutedExchange["tokenGates"] = [];
  #facts: Facts = {};
  #textBytes = 0;
  #wasSent = false;
  #isSettled = false;
  #isEstimated = false;
  #price: Price | undefined;
  #firstAtMs: number | undefined;

  constructor(
    exchange: RoutedExchange,
    request: LlmRequestFacts,
    {
      requestBytes,
      catalog,
    }: { readonly requestBytes: (() => number) | undefined; readonly catalog: Catalog | undefined },
  ) {
    this.#exchange = exchange;
    this.#request = request;
    this.countsText = requestBytes !== undefined && exchange.tokenGates.length > 0;
    // The measure holds the parsed request, which an open stream would keep with it.
    this.#requestBytes = this.countsText ? requestBytes : undefined;
    this.#catalog = catalog;
    this.#publish();
    // The client can leave at any moment, also before the provider responds.
    exchange.onDone(() => this.settle(this.#wasSent ? "partial" : "failed"));
  }

  async admit(gates: RoutedExchange["tokenGates"]): Promise<void> {
    for (const gate of gates) {
      const waiting = gate.admit();
      if (waiting instanceof Promise) await waiting;
      this.#admitted.push(gate);
    }
  }

  sent(): void {
    this.#wasSent = true;
  }

  flowing(): void {
    this.#firstAtMs ??= performance.now();
  }

  addText(bytes: number): void {
    this.#textBytes += bytes;
  }

  record(facts: Facts): void {
    this.#facts = facts;
    if (!this.#isSettled) this.#publish();
  }

  settle(ending: Ending): void {
    if (this.#isSettled) return;
    this.#isSettled = true;
    const usage = this.#settledUsage(ending);
    if (this.#isEstimated) this.#facts = { ...this.#facts, ...(usage === undefined ? {} : { usage }) };
    if (usage !== undefined) this.#price = this.#priceOf(usage);
    // Expressions for the cost of a limit are evaluated when it is settled.
    if (this.#isEstimated || this.#price !== undefined) this.#publish();
    const total = usage === undefined ? 0 : usage.inputTokens + usage.outputTokens;
    for (const gate of this.#admitted) gate.settle(total);
  }

  #priceOf(usage: Usage): Price | undefined {
    const { requestModel = "", provider } = this.#request;
    const responseModel = this.#facts.model;
    return this.#catalog && priceUsage(this.#catalog, { provider, requestModel, responseModel, usage });
  }

  #settledUsage(ending: Ending): Usage | undefined {
    const { usage, hasRunningUsage = false } = this.#facts;
    const isKnown = ending === "complete" && usage !== undefined && !hasRunningUsage;
    if (isKnown || ending === "failed" || !this.countsText || this.#requestBytes === undefined) return usage;
    const inputTokens = usage?.inputTokens ?? Math.ceil(this.#requestBytes() / BYTES_PER_TOKEN);
    const outputTokens = Math.max(usage?.outputTokens ?? 0, Math.ceil(this.#textBytes / BYTES_PER_TOKEN));
    this.#isEstimated = inputTokens !== usage?.inputTokens || outputTokens !== usage.outputTokens;
    return { ...usage, inputTokens, outputTokens };
  }

  #publish(): void {
    const { model, usage, serviceTier, countTokens } = this.#facts;
    const root: Record<string, unknown> = { ...this.#request, ...usage };
    if (model !== undefined) root["responseModel"] = model;
    if (serviceTier !== undefined) root["serviceTier"] = serviceTier;
    if (usage !== undefined) root["totalTokens"] = usage.inputTokens + usage.outputTokens;
    if (countTokens !== undefined) root["countTokens"] = countTokens;
    if (this.#isEstimated) root["usageEstimated"] = true;
    if (this.#price !== undefined) addPrice(root, this.#price);
    if (this.#firstAtMs !== undefined) this.#addTimes(root, this.#firstAtMs);
    this.#exchange.setRoot("llm", root);
  }

  /** Adds the timing of a stream, as far as it has arrived. */
  #addTimes(root: Record<string, unknown>, firstAtMs: number): void {
    root["timeToFirstToken"] = Duration.ofMilliseconds(firstAtMs - this.#exchange.startedAtMs);
    const tokens = this.#facts.usage?.outputTokens ?? 0;
    if (tokens > 0) root["timePerOutputToken"] = Duration.ofMilliseconds((performance.now() - firstAtMs) / tokens);
  }
}

function addPrice(root: Record<PropertyKey, unknown>, { status, cost, costRates }: Price): void {
  root[LOOKUP_STATUS] = status;
  if (cost !== undefined) root["cost"] = cost;
  if (costRates !== undefined) root["costRates"] = costRates;
}
