/** The key sets that policies name: fetched here, for every form of deployment, and handed to the translator. */
import type { ConnectionOptions } from "node:tls";
import type { BackendTls } from "../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { systemClock } from "../lib/clock.ts";
import { SourceError } from "../lib/errors.ts";
import type { Logger } from "../lib/log.ts";
import { tlsOptions } from "../proxy/upstream/dial/tls.ts";
import {
  createDocuments,
  type Documents,
  type DocumentStore,
  type StoredDocument,
} from "../sources/remote/documents.ts";
import { fetchDocument, type FetchOptions } from "../sources/remote/fetch-document.ts";
import { parseKeySet } from "../translator/policies/jwks/jwks.ts";
import type { TranslatorEvent } from "../translator/translator.ts";

/** Keys are fetched where there is no workload API: once for all data planes. */
function tlsWithoutIdentity(tls: BackendTls, host: string): ConnectionOptions {
  if (tls.spiffe)
    throw new SourceError("keys are fetched without a workload identity; certificateSource SPIFFE has none here");
  return tlsOptions(tls, host);
}

export interface KeySetOptions {
  readonly log: Logger;
  readonly apply: (events: readonly TranslatorEvent[]) => void;
  /** What was kept over a restart, by key. */
  readonly stored?: ReadonlyMap<string, StoredDocument>;
  readonly store?: DocumentStore;
  /** Addresses that nothing is fetched from; unset: there are none. */
  readonly refuses?: FetchOptions["refuses"];
}

export function createRemoteJwks({
  log,
  apply,
  stored = new Map(),
  store,
  refuses = () => false,
}: KeySetOptions): Documents {
  return createDocuments({
    log,
    clock: systemClock,
    fetch: (wanted, address, signal) =>
      fetchDocument(wanted, address, signal, { tlsOptions: tlsWithoutIdentity, refuses }),
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
