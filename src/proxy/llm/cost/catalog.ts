/**
 * A model catalog: the sources of one Gateway, merged and indexed, so that a look-up is two or three reads of a map.
 * `catalogs.ts` creates one per Gateway; the ledger and the choice of formats look models up.
 */
import {
  RATE_NAMES,
  type CatalogSource,
  type ModelEntry,
  type RateName,
  type Rates,
  type Tier,
} from "./catalog-source.ts";

export interface CatalogModel {
  readonly rates: Rates;
  readonly tiers: readonly Tier[];
  readonly tags: ReadonlySet<string>;
}

export const NO_TAGS: ReadonlySet<string> = new Set();

/** Endings that name a version of a model, which is tried without them: a date, and the version and part of Bedrock. */
const VERSIONS = [/-v\d+:\d+$/, /[-@]\d{8}$/];

export class Catalog {
  readonly #providers = new Map<string, Map<string, CatalogModel>>();

  /** @param sources later ones win: rate by rate, and tiers as a whole; tags add up */
  constructor(sources: Iterable<CatalogSource>) {
    for (const source of sources) {
      for (const [identity, entries] of source) {
        const models = this.#providers.get(identity) ?? new Map<string, CatalogModel>();
        this.#providers.set(identity, models);
        for (const [name, entry] of entries) models.set(name, merge(models.get(name), entry));
      }
    }
  }

  /** Finds a model by the first name that is listed. @param names undefined ones are skipped */
  find(identity: string, names: readonly (string | undefined)[]): CatalogModel | undefined {
    const models = this.#providers.get(identity.toLowerCase());
    if (models === undefined) return undefined;
    for (const name of names) {
      const found = name === undefined ? undefined : findModel(models, name.toLowerCase());
      if (found !== undefined) return found;
    }
    return undefined;
  }
}

function findModel(models: ReadonlyMap<string, CatalogModel>, name: string): CatalogModel | undefined {
  let left = name;
  let found = models.get(left);
  for (const version of VERSIONS) {
    if (found !== undefined) return found;
    const shorter = left.replace(version, "");
    if (shorter === left) continue;
    left = shorter;
    found = models.get(left);
  }
  return found;
}

function merge(former: CatalogModel | undefined, { rates, tiers, tags }: ModelEntry): CatalogModel {
  return {
    rates: { ...former?.rates, ...rates },
    tiers: tiers ?? former?.tiers ?? [],
    tags: tags.length === 0 ? (former?.tags ?? NO_TAGS) : new Set([...(former?.tags ?? []), ...tags]),
  };
}

/** The rate that stands in where a model has none of its own. */
const SUBSTITUTES: { readonly [N in RateName]?: RateName } = {
  cacheRead: "input",
  cacheWrite: "input",
  reasoning: "output",
  inputAudio: "input",
  outputAudio: "output",
};

/** Returns the rates in force for a prompt: the highest tier below it over the base rates, each with its substitute. */
export function ratesFor({ rates, tiers }: CatalogModel, promptTokens: number): Rates {
  const tier = tiers.findLast(({ contextOver }) => contextOver < promptTokens);
  const chosen: Rates = tier === undefined ? rates : { ...rates, ...tier.rates };
  const filled: { [N in RateName]?: bigint } = {};
  for (const name of RATE_NAMES) {
    const rate = chosen[name] ?? chosen[SUBSTITUTES[name] ?? name];
    if (rate !== undefined) filled[name] = rate;
  }
  return filled;
}
