/**
 * Runs source, translator and proxy in one process: events pass through the translator into the proxy, one step after
 * the other. `gwproxy up` feeds it from files; feature tests feed it from other sources.
 */
import type { ApplyResult, ResourceUpdate } from "../ir/resource.ts";
import type { OwnListeners } from "../lib/network/own-listeners.ts";
import type { Logger } from "../lib/log.ts";
import type { Source, SourceDiagnostic } from "../sources/source.ts";
import type { Translator, TranslatorEvent } from "../translator/translator.ts";
import { createRemoteJwks } from "./remote-jwks.ts";

export interface EmbeddedOptions {
  readonly log: Logger;
  readonly source: Source;
  readonly translator: Translator;
  readonly proxy: { apply(update: ResourceUpdate): Promise<ApplyResult> };
  /** Addresses from which no JWKS is fetched. */
  readonly ownListeners?: OwnListeners;
  /** Called after each step has reached traffic. */
  readonly onApplied: (update: ResourceUpdate, result: ApplyResult) => void;
  /** Called after each step that may have changed the diagnostics of an object, even when no resource changed. */
  readonly onReviewed: () => void;
  readonly onDiagnostics: (diagnostics: readonly SourceDiagnostic[]) => void;
  readonly onFailure: (error: unknown) => void;
}

export interface Embedded {
  /** Resolves when the first full state serves. */
  start(): Promise<void>;
  /** Resolves when everything that was delivered so far serves. */
  settled(): Promise<void>;
  stop(): Promise<void>;
}

export function createEmbedded(options: EmbeddedOptions): Embedded {
  const { log, source, translator, proxy, onApplied, onReviewed, onDiagnostics, onFailure } = options;
  const remoteJwks = createRemoteJwks({
    log: log.child("keys"),
    apply,
    refuses: (address, port) => options.ownListeners?.includes(address, port) === true,
  });
  let last: Promise<void> = Promise.resolve();

  function apply(events: readonly TranslatorEvent[]): void {
    // The translator runs at once, so that steps keep the order of events; the proxy applies them one by one.
    const { update, documents, touched } = translator.apply(events);
    const moved = update.set.length > 0 || update.removed.length > 0;
    if (moved || touched.length > 0) last = last.then(() => finish(moved ? update : undefined)).catch(onFailure);
    // Must come last: a document that is already there is delivered as a step of its own, which must follow this one.
    if (documents !== undefined) remoteJwks.want(documents);
  }

  async function finish(update: ResourceUpdate | undefined): Promise<void> {
    if (update !== undefined) onApplied(update, await proxy.apply(update));
    onReviewed();
  }

  return {
    async start() {
      await source.start({ apply, report: onDiagnostics });
      await last;
    },
    settled: () => last,
    async stop() {
      remoteJwks.stop();
      await source.stop();
    },
  };
}
