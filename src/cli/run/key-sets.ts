/** The key sets that policies name: fetched here, for every form of deployment, and handed to the translator. */
import { systemClock } from "../../lib/clock.ts";
import type { Logger } from "../../lib/log.ts";
import { tlsOptions } from "../../proxy/backends/tls.ts";
import {
  createDocuments,
  type Documents,
  type DocumentStore,
  type StoredDocument,
} from "../../sources/remote/documents.ts";
import { fetchDocument } from "../../sources/remote/fetch-document.ts";
import { parseKeySet } from "../../translator/key-set.ts";
import type { TranslatorEvent } from "../../translator/translator.ts";

export interface KeySetOptions {
  readonly log: Logger;
  readonly apply: (events: readonly TranslatorEvent[]) => void;
  /** What was kept over a restart, by key. */
  readonly stored?: ReadonlyMap<string, StoredDocument>;
  readonly store?: DocumentStore;
}

export function createKeySets({ log, apply, stored = new Map(), store }: KeySetOptions): Documents {
  return createDocuments({
    log,
    clock: systemClock,
    fetch: (wanted, address, signal) => fetchDocument(wanted, address, signal, { tlsOptions }),
    // An answer without a usable key is a failure: the keys that were good before stay.
    faultOf(text) {
      const keys = parseKeySet(text);
      return typeof keys === "string" ? keys : undefined;
    },
    deliver: (key, document) => apply([{ type: "document", key, document }]),
    stored,
    ...(store === undefined ? {} : { store }),
  });
}
