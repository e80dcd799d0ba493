/**
 * Reads Secrets and ConfigMaps through recorded reads of the graph. Settings, listeners and policies use it. Values are
 * UTF-8 text without surrounding white space; an empty value, or one that is not UTF-8, counts as missing. Messages
 * name objects and entries, never values.
 */
import type { LocalSecretRef } from "../../../generated/types/common.ts";
import type { Labels } from "../../api/label-selector.ts";
import type { ConfigMap, Secret } from "../../api/core.ts";
import type { Readable, ReadableIndex } from "../../lib/collections/collection.ts";
import type { Read } from "../../lib/collections/graph.ts";
import { selectByLabels } from "./label-index.ts";

/** Entry names and their text; undefined for an entry that is not text. */
export type Entries = ReadonlyMap<string, string | undefined>;

export interface NamedEntries {
  readonly name: string;
  readonly entries: Entries;
}

export interface SecretCollections {
  readonly secrets: Readable<Secret>;
  readonly configMaps: Readable<ConfigMap>;
  readonly secretsByLabels: ReadableIndex<Secret>;
  readonly configMapsByLabels: ReadableIndex<ConfigMap>;
}

export class SecretReader {
  readonly #collections: SecretCollections;
  readonly #read: Read;
  readonly #namespace: string;

  /** @param namespace namespace of the referring object, which references never leave */
  constructor(collections: SecretCollections, read: Read, namespace: string) {
    this.#collections = collections;
    this.#read = read;
    this.#namespace = namespace;
  }

  /** @returns the entries, or what is wrong with the reference */
  secret(ref: LocalSecretRef): Entries | string {
    // Read the name in every case: a field that is never read is unsupported (shared/unsupported-fields.ts).
    const { name, group = "", kind = "" } = ref;
    if (group !== "" || (kind !== "" && kind !== "Secret"))
      return `unsupported credential kind ${kind} of group "${group}"`;
    const secret = this.#read.get(this.#collections.secrets, `${this.#namespace}/${name}`);
    return secret === undefined ? `Secret ${this.#namespace}/${name} not found` : entriesOfSecret(secret);
  }

  /** @returns the text of one entry, or what is wrong with the reference */
  entry(ref: LocalSecretRef, key: string): { readonly value: string } | { readonly error: string } {
    const entries = this.secret(ref);
    if (typeof entries === "string") return { error: entries };
    const value = entries.get(key) ?? "";
    if (value !== "") return { value };
    return { error: `Secret ${this.#namespace}/${ref.name} has no text in entry ${key}` };
  }

  /**
   * Reads several entries.
   * @param optional entries that may be missing, which then are ""
   * @returns the texts by entry, or what is wrong with the reference
   */
  texts<N extends string>(
    ref: LocalSecretRef,
    names: readonly N[],
    optional: readonly N[] = [],
  ): { readonly texts: Readonly<Record<N, string>> } | { readonly error: string } {
    const entries = this.secret(ref);
    if (typeof entries === "string") return { error: entries };
    const missing = names.filter((name) => (entries.get(name) ?? "") === "");
    if (missing.length > 0) {
      const what = missing.length === 1 ? "entry" : "entries";
      return { error: `Secret ${this.#namespace}/${ref.name} has no text in ${what} ${missing.join(", ")}` };
    }
    const texts = [...names, ...optional].map((name) => [name, entries.get(name) ?? ""]);
    // Every name has its entry.
    return { texts: Object.fromEntries(texts) as Record<N, string> };
  }

  configMap(name: string): Entries | string {
    const map = this.#read.get(this.#collections.configMaps, `${this.#namespace}/${name}`);
    return map === undefined ? `ConfigMap ${this.#namespace}/${name} not found` : entriesOfConfigMap(map);
  }

  secretsWith(labels: Labels): NamedEntries[] {
    const found = selectByLabels(this.#read, this.#collections.secretsByLabels, this.#namespace, labels);
    return found.map((secret) => ({ name: secret.metadata.name, entries: entriesOfSecret(secret) }));
  }

  configMapsWith(labels: Labels): NamedEntries[] {
    const found = selectByLabels(this.#read, this.#collections.configMapsByLabels, this.#namespace, labels);
    return found.map((map) => ({ name: map.metadata.name, entries: entriesOfConfigMap(map) }));
  }
}

function entriesOfSecret({ data = {}, stringData = {} }: Secret): Entries {
  return sorted([
    ...Object.entries(data).map(([name, value]) => [name, decode(value)] as const),
    ...Object.entries(stringData).map(([name, value]) => [name, value.trim()] as const),
  ]);
}

function entriesOfConfigMap({ data = {}, binaryData = {} }: ConfigMap): Entries {
  return sorted([
    ...Object.entries(binaryData).map(([name, value]) => [name, decode(value)] as const),
    ...Object.entries(data).map(([name, value]) => [name, value.trim()] as const),
  ]);
}

function sorted(entries: readonly (readonly [string, string | undefined])[]): Entries {
  return new Map([...new Map(entries)].sort(([a], [b]) => (a < b ? -1 : 1)));
}

function decode(base64: string): string | undefined {
  try {
    const bytes = Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes).trim();
  } catch {
    return undefined; // neither base64 nor UTF-8, so the value counts as missing
  }
}
