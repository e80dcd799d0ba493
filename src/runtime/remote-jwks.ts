/** Fetches the JWKS that policies name and hands them to the translator. `gwproxy up` and the controller use it. */
import type { ConnectionOptions } from "node:tls";
import type { BackendTls } from "../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { systemClock } from "../lib/time/clock.ts";
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
import { parseJwks } from "../translator/policies/jwks/jwks.ts";
import type { TranslatorEvent } from "../translator/translator.ts";

/**
 * Returns TLS options without a workload identity: JWKS are fetched once for all data planes, where there is no SPIFFE
 * workload API.
 */
function tlsWithoutIdentity(tls: BackendTls, host: string): ConnectionOptions {
  if (tls.spiffe)
    throw new SourceError("keys are fetched without a workload identity; certificateSource SPIFFE has none here");
  return tlsOptions(tls, host);
}

export interface RemoteJwksOptions {
  readonly log: Logger;
  readonly apply: (events: readonly TranslatorEvent[]) => void;
  /** JWKS that were kept over a restart, by key. */
  readonly stored?: ReadonlyMap<string, StoredDocument>;
  readonly store?: DocumentStore;
  /** Decides which addresses must not be fetched from; without it, all are allowed. */
  readonly refuses?: FetchOptions["refuses"];
}

export function createRemoteJwks({
  log,
  apply,
  stored = new Map(),
  store,
  refuses = () => false,
}: RemoteJwksOptions): Documents {
  return createDocuments({
    log,
    clock: systemClock,
    fetch: (wanted, address, signal) =>
      fetchDocument(wanted, address, signal, { tlsOptions: tlsWithoutIdentity, refuses }),
    // An answer without a usable key is a failure, so that the last good keys stay in use.
    findError(text) {
      const keys = parseJwks(text);
      return typeof keys === "string" ? keys : undefined;
    },
    deliver: (key, document) => apply([{ type: "document", key, document }]),
    stored,
    ...(store === undefined ? {} : { store }),
  });
}
