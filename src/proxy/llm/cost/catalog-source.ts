/**
 * Parses the text of one source of a model catalog: prices and tags of models, by the identity of their provider. The
 * parser is strict, so that a misspelt rate cannot make a model free. `catalogs.ts` uses it.
 *
 *     {"providers": {"<identity>": {"models": {"<model>": {
 *       "rates": {"input": "2.5", …}, "tiers": [{"contextOver": 200000, "rates": {…}}], "tags": ["runtime"]}}}}}
 */
import { ConfigError } from "../../../lib/errors.ts";
import { suggestion } from "../../../lib/suggest.ts";
import { JsonError, objectOf, parseJson, type Json, type JsonObject } from "../shared/json.ts";

export const RATE_NAMES = [
  "input",
  "output",
  "cacheRead",
  "cacheWrite",
  "reasoning",
  "inputAudio",
  "outputAudio",
] as const;

export type RateName = (typeof RATE_NAMES)[number];

/** Rates in millionths of a dollar per million tokens, so that a price is an integer. */
export type Rates = { readonly [N in RateName]?: bigint };

export interface Tier {
  /** The tier applies to prompts of more tokens than this. */
  readonly contextOver: number;
  /** Replace the base rates of the same names. */
  readonly rates: Rates;
}

export interface ModelEntry {
  readonly rates: Rates;
  /** In ascending order of `contextOver`; undefined when the source names none. */
  readonly tiers: readonly Tier[] | undefined;
  readonly tags: readonly string[];
}

/** Entries by provider identity and by model, both in lower case. */
export type CatalogSource = ReadonlyMap<string, ReadonlyMap<string, ModelEntry>>;

/** Limits of one source. The text of a ConfigMap has at most 1 MiB in a cluster; files may hold more. */
const MAX_BYTES = 8 * 1024 * 1024;
const MAX_MODELS = 50_000;
const MAX_TIERS = 16;
const MAX_TAGS = 32;
const MAX_NAME = 256;

/** At most six decimals, and nine digits before them. */
const RATE = /^(\d{1,9})(?:\.(\d{1,6}))?$/;

/** @throws ConfigError that names the path of the first fault */
export function parseCatalogSource(text: string): CatalogSource {
  if (text.length > MAX_BYTES) throw new ConfigError(`the text is longer than ${MAX_BYTES} bytes; split it`);
  const root = membersOf(readJson(text), "", ["providers"]);
  const source = new Map<string, Map<string, ModelEntry>>();
  let count = 0;
  for (const [identity, provider] of namedMembers(required(root, "providers", ""), "providers")) {
    const path = memberPath("providers", identity);
    const models = source.get(identity.toLowerCase()) ?? new Map<string, ModelEntry>();
    const listed = required(membersOf(provider, path, ["models"]), "models", path);
    for (const [model, entry] of namedMembers(listed, `${path}.models`)) {
      const at = memberPath(`${path}.models`, model);
      if (models.has(model.toLowerCase())) throw fault(at, "the model is listed twice, in another case; keep one");
      if (++count > MAX_MODELS) throw fault(at, `there are more than ${MAX_MODELS} models; split the source`);
      models.set(model.toLowerCase(), readModel(entry, at));
    }
    source.set(identity.toLowerCase(), models);
  }
  return source;
}

function readJson(text: string): Json {
  try {
    return parseJson(Buffer.from(text));
  } catch (error) {
    if (error instanceof JsonError) throw new ConfigError(`the text is ${error.message}; write one JSON object`);
    throw error;
  }
}

function readModel(entry: Json | undefined, path: string): ModelEntry {
  const { rates, tiers, tags } = membersOf(entry, path, ["rates", "tiers", "tags"]);
  return {
    rates: rates === undefined ? {} : readRates(rates, `${path}.rates`),
    tiers: tiers === undefined ? undefined : readTiers(tiers, `${path}.tiers`),
    tags: tags === undefined ? [] : readTags(tags, `${path}.tags`),
  };
}

function readRates(value: Json, path: string): Rates {
  const members = membersOf(value, path, RATE_NAMES);
  const rates: { [N in RateName]?: bigint } = {};
  for (const name of RATE_NAMES) {
    const rate = members[name];
    if (rate !== undefined) rates[name] = readRate(rate, `${path}.${name}`);
  }
  return rates;
}

function readRate(value: Json, path: string): bigint {
  const [, whole, decimals = ""] = (typeof value === "string" ? RATE.exec(value) : null) ?? [];
  if (whole === undefined)
    throw fault(path, 'not a decimal text; write dollars per million tokens with at most six decimals, such as "2.5"');
  return BigInt(whole + decimals.padEnd(6, "0"));
}

function readTiers(value: Json, path: string): readonly Tier[] {
  let above = -1;
  return elementsOf(value, path, MAX_TIERS).map((element, at) => {
    const here = `${path}[${at}]`;
    const { contextOver, rates } = membersOf(element, here, ["contextOver", "rates"]);
    if (typeof contextOver !== "number" || !Number.isSafeInteger(contextOver) || contextOver < 0)
      throw fault(`${here}.contextOver`, "not a number of tokens; write an integer that is not negative");
    if (contextOver <= above) throw fault(`${here}.contextOver`, `not above the tier before; sort the tiers`);
    above = contextOver;
    if (rates === undefined) throw fault(`${here}.rates`, "missing; write the rates of the tier");
    return { contextOver, rates: readRates(rates, `${here}.rates`) };
  });
}

function readTags(value: Json, path: string): readonly string[] {
  return elementsOf(value, path, MAX_TAGS).map((tag, at) => {
    if (typeof tag === "string" && tag !== "" && tag.length <= MAX_NAME) return tag;
    throw fault(`${path}[${at}]`, `not a tag; write a text of 1 to ${MAX_NAME} characters`);
  });
}

/** @throws ConfigError for an object with other members than the given ones, and for any other value */
function membersOf(value: Json | undefined, path: string, names: readonly string[]): JsonObject {
  const object = objectOf(value);
  if (object === undefined) throw fault(path, "not a JSON object");
  for (const name of Object.keys(object)) {
    if (names.includes(name)) continue;
    const meant = suggestion(name, names);
    throw fault(memberPath(path, name), `unknown key; ${meant === "" ? `known keys are ${names.join(", ")}` : meant}`);
  }
  return object;
}

function namedMembers(value: Json, path: string): [name: string, member: Json | undefined][] {
  const object = objectOf(value);
  if (object === undefined) throw fault(path, "not a JSON object");
  const members = Object.entries(object);
  const bad = members.find(([name]) => name === "" || name.length > MAX_NAME);
  if (bad !== undefined) throw fault(memberPath(path, bad[0]), `not a name of 1 to ${MAX_NAME} characters`);
  return members;
}

function required(object: JsonObject, name: string, path: string): Json {
  const value = object[name];
  if (value === undefined) throw fault(memberPath(path, name), "missing; write a JSON object");
  return value;
}

function elementsOf(value: Json, path: string, most: number): Json[] {
  if (!Array.isArray(value)) throw fault(path, "not a list");
  if (value.length > most) throw fault(path, `longer than ${most} elements`);
  return value;
}

const PLAIN = /^[A-Za-z_]\w*$/;
const MAX_SHOWN = 64;

/** Names that are not plain words stand in brackets, as in `models["gpt-4.1"]`. */
function memberPath(path: string, name: string): string {
  const shown = name.slice(0, MAX_SHOWN);
  if (!PLAIN.test(shown)) return `${path}[${JSON.stringify(shown)}]`;
  return path === "" ? shown : `${path}.${shown}`;
}

function fault(path: string, message: string): ConfigError {
  return new ConfigError(path === "" ? `the text is ${message}` : `${path}: ${message}`);
}
