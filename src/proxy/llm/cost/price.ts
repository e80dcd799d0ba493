/**
 * Prices the usage of an LLM request. Money is counted in trillionths of a dollar (a rate of a millionth of a dollar per
 * million tokens, times one token), as integers: sums are exact, and become numbers and texts only at the end. The
 * ledger uses it.
 */
import { toDouble, type Double } from "../../../cel/values.ts";
import type { Usage } from "../shared/usage.ts";
import { ratesFor, type Catalog, type CatalogModel } from "./catalog.ts";
import { RATE_NAMES, type RateName } from "./catalog-source.ts";

/** Result of a look-up, in the words of the metric `cost_catalog_lookups_total`. */
export type LookupStatus = "Exact" | "Unpriced" | "Missing";

/** Member of the `llm` root that holds the status, where there is a catalog. Expressions cannot see it, because its name is no text. */
export const LOOKUP_STATUS: unique symbol = Symbol("status of the look-up in the model catalog");

/** `llm.cost` and `llm.costRates` of expressions, in dollars, and dollars per million tokens. */
export interface Price {
  readonly status: LookupStatus;
  readonly cost?: Readonly<Record<string, number | Double>>;
  readonly costRates?: Readonly<Record<string, number | Double>>;
}

const PER_DOLLAR = 1_000_000_000_000n;
const DECIMALS = 12;
const MAX_EXACT = BigInt(Number.MAX_SAFE_INTEGER);
const RATE_UNITS = 1_000_000;

interface PricedCall {
  readonly provider: string;
  readonly requestModel: string;
  readonly responseModel: string | undefined;
  readonly usage: Usage;
}

export function priceUsage(catalog: Catalog, call: PricedCall): Price {
  const model = catalog.find(call.provider, [call.responseModel, call.requestModel]);
  return model === undefined ? { status: "Missing" } : priceBy(model, call.usage);
}

function priceBy(model: CatalogModel, usage: Usage): Price {
  const rates = ratesFor(model, usage.inputTokens);
  const tokens = splitUsage(usage);
  const cost: Record<string, number | Double> = {};
  const costRates: Record<string, number | Double> = {};
  let total = 0n;
  let isPriced = true;
  for (const name of RATE_NAMES) {
    const rate = rates[name];
    if (rate === undefined) {
      isPriced &&= tokens[name] === 0;
      continue;
    }
    const amount = rate * BigInt(tokens[name]);
    total += amount;
    cost[name] = dollars(amount);
    costRates[name] = toDouble(Number(rate) / RATE_UNITS);
  }
  if (!isPriced || Object.keys(costRates).length === 0) return { status: "Unpriced", costRates };
  return { status: "Exact", cost: { total: dollars(total), ...cost }, costRates };
}

/** Splits the usage into parts that do not overlap: what has a rate of its own is taken out of input and output. */
function splitUsage(usage: Usage): Readonly<Record<RateName, number>> {
  let input = usage.inputTokens;
  let output = usage.outputTokens;
  const fromInput = (count = 0): number => {
    const part = Math.min(count, input);
    input -= part;
    return part;
  };
  const fromOutput = (count = 0): number => {
    const part = Math.min(count, output);
    output -= part;
    return part;
  };
  const parts = {
    cacheRead: fromInput(usage.cachedInputTokens),
    cacheWrite: fromInput(usage.cacheCreationInputTokens),
    inputAudio: fromInput(usage.inputAudioTokens),
    reasoning: fromOutput(usage.reasoningTokens),
    outputAudio: fromOutput(usage.outputAudioTokens),
  };
  return { ...parts, input, output };
}

/**
 * Returns the double nearest to an amount. One division of two exact integers rounds once; an amount beyond 2^53 would be
 * rounded before it, so its decimal text is parsed.
 */
function dollars(amount: bigint): number | Double {
  return toDouble(amount <= MAX_EXACT ? Number(amount) / Number(PER_DOLLAR) : Number(decimalText(amount)));
}

function decimalText(amount: bigint): string {
  return `${amount / PER_DOLLAR}.${String(amount % PER_DOLLAR).padStart(DECIMALS, "0")}`;
}
