/**
 * Sends records to one collector in batches, in the background (observability.md 1.4 and 4.3). A collector that is slow, full
 * or away costs records, which are counted, and never a request. What waits is bounded, and so are the tries.
 */
import { createBackoff } from "../../lib/backoff.ts";
import type { Clock } from "../../lib/clock.ts";
import type { Logger } from "../../lib/log.ts";
import type { AttributeSink, AttributeValue } from "../attributes.ts";
import type { Span } from "../span.ts";
import { type Envelope, openLog, writeLogField, writeSpan } from "./encode.ts";
import type { LogHead, LogSink, SpanSink } from "./sinks.ts";
import { WireWriter } from "./wire-writer.ts";

/** What became of one request to a collector. */
export type ExportOutcome =
  /** It refuses some of the records for good. */
  | { readonly kind: "taken"; readonly rejected: number; readonly message: string }
  /** It may take the same request another time, at its wish not before `afterMs`. */
  | { readonly kind: "later"; readonly reason: string; readonly afterMs: number | undefined }
  | { readonly kind: "refused"; readonly reason: string };

export interface ExporterOptions {
  readonly envelope: Envelope;
  /** One try; ends by itself in bounded time, and never rejects. */
  readonly send: (request: Buffer) => Promise<ExportOutcome>;
  /** How long the first record of a batch waits for others. */
  readonly delayMs: number;
  readonly clock: Clock;
  readonly log: Logger;
  /** Who it reports to, for the log. */
  readonly collector: string;
  readonly onDropped: (records: number) => void;
  /** There is something to send from now on, or nothing any more. */
  readonly onBusy: (exporter: Exporter, busy: boolean) => void;
  readonly random?: () => number;
}

const BATCH_RECORDS = 512;
const QUEUE_RECORDS = 2048;
/** Collectors take requests of 4 MiB unless they are told otherwise. */
const BATCH_BYTES = 1_048_576;
const RECORD_BYTES = 1_048_576;
const QUEUE_BYTES = 8 * BATCH_BYTES;
const FIRST_CAPACITY = 16_384;
/** As many as the queue has full batches. */
const MAX_SENDING = 4;
/** With the waits below about a minute, in which a collector that is replaced comes back. */
const MAX_TRIES = 16;
const FIRST_WAIT_MS = 500;
const LONGEST_WAIT_MS = 5_000;
/** What a collector may ask for. */
const LONGEST_ASKED_WAIT_MS = 30_000;
const LOG_INTERVAL_MS = 10_000;

/** One that is being filled. */
interface OpenBatch {
  readonly writer: WireWriter;
  records: number;
}

interface ClosedBatch {
  /** Whole, as it is sent. */
  readonly request: Buffer;
  readonly records: number;
  /** Of the records. */
  readonly bytes: number;
}

export class Exporter implements LogSink, AttributeSink, SpanSink {
  readonly #options: ExporterOptions;
  #open: OpenBatch | undefined;
  #closed: ClosedBatch[] = [];
  #sending = 0;
  /** Records that are not settled yet, and their bytes. */
  #records = 0;
  #bytes = 0;
  #capacity = FIRST_CAPACITY;
  #begun: { readonly writer: WireWriter; readonly recordAt: number; readonly inner: number } | undefined;
  #cancelTimer: (() => void) | undefined;
  /** Of those that wait for another try. */
  readonly #wakers = new Set<() => void>();
  #idle = Promise.withResolvers<void>();
  /** What comes while the end is awaited does not wait for others. */
  #hurries = false;
  #ended = false;
  #unlogged = 0;
  #silentUntilMs = 0;

  constructor(options: ExporterOptions) {
    this.#options = options;
  }

  begin(head: LogHead): AttributeSink | undefined {
    this.#takeBack();
    const writer = this.#room(1);
    if (writer === undefined) return undefined;
    const recordAt = writer.length;
    this.#begun = { recordAt, inner: openLog(writer, head), writer };
    return this;
  }

  /** A field of the record that was begun. */
  add(name: string, value: AttributeValue): void {
    if (this.#begun !== undefined) writeLogField(this.#begun.writer, name, value);
  }

  end(): void {
    const begun = this.#begun;
    if (begun === undefined) return;
    this.#begun = undefined;
    begun.writer.close(begun.inner);
    this.#added(begun.writer, begun.recordAt, 1);
  }

  take(spans: readonly Span[]): void {
    const writer = this.#room(spans.length);
    if (writer === undefined) return;
    const start = writer.length;
    for (const span of spans) writeSpan(writer, span);
    this.#added(writer, start, spans.length);
  }

  /** Sends what there is; resolves when it is settled or the time is over, and then takes nothing any more. */
  async flush(limitMs: number): Promise<void> {
    this.#hurries = true;
    if (this.#records > 0) {
      this.#seal();
      const { promise: late, resolve } = Promise.withResolvers<void>();
      const cancel = this.#options.clock.after(limitMs, resolve);
      await Promise.race([this.#idle.promise, late]);
      cancel();
    }
    this.#end();
  }

  /** A record that was never ended, because something failed in between, is none. */
  #takeBack(): void {
    this.#begun?.writer.truncate(this.#begun.recordAt);
    this.#begun = undefined;
  }

  /** @returns where to write so many records; undefined: nowhere, and they are counted */
  #room(records: number): WireWriter | undefined {
    if (records === 0) return undefined;
    if (this.#ended || this.#records + records > QUEUE_RECORDS || this.#bytes > QUEUE_BYTES) {
      this.#drop(records, this.#ended ? "the data plane ends" : "too many wait");
      return undefined;
    }
    if (this.#open !== undefined && this.#open.records + records > BATCH_RECORDS) this.#seal();
    this.#open ??= { writer: new WireWriter(this.#capacity), records: 0 };
    return this.#open.writer;
  }

  #added(writer: WireWriter, start: number, records: number): void {
    const bytes = writer.length - start;
    if (bytes > RECORD_BYTES) {
      writer.truncate(start);
      this.#drop(records, `more than ${RECORD_BYTES} bytes`);
      return;
    }
    const { clock, delayMs, onBusy } = this.#options;
    if (this.#records === 0) onBusy(this, true);
    this.#records += records;
    this.#bytes += bytes;
    const batch = this.#open;
    if (batch === undefined) return;
    batch.records += records;
    if (this.#hurries || batch.records >= BATCH_RECORDS || writer.length >= BATCH_BYTES) this.#seal();
    else this.#cancelTimer ??= clock.after(delayMs, this.#due.bind(this));
  }

  /** While all that may be sent at once is, a batch goes on to fill. */
  #due(): void {
    this.#cancelTimer = undefined;
    if (this.#sending < MAX_SENDING) this.#seal();
  }

  #seal(): void {
    this.#cancelTimer?.();
    this.#cancelTimer = undefined;
    this.#takeBack();
    const batch = this.#open;
    this.#open = undefined;
    if (batch === undefined || batch.records === 0) return;
    const { writer, records } = batch;
    const written = writer.written();
    // The next one will probably be as large.
    this.#capacity = written.length + FIRST_CAPACITY;
    this.#closed.push({ request: this.#options.envelope.around(written), records, bytes: written.length });
    this.#next();
  }

  #next(): void {
    while (this.#sending < MAX_SENDING) {
      const batch = this.#closed.shift();
      if (batch === undefined) break;
      this.#sending++;
      void this.#deliver(batch);
    }
    // One that was due while there was no way to send it.
    if (this.#sending < MAX_SENDING && this.#cancelTimer === undefined) this.#seal();
  }

  async #deliver({ request, records, bytes }: ClosedBatch): Promise<void> {
    const backoff = createBackoff({
      initialMs: FIRST_WAIT_MS,
      maxMs: LONGEST_WAIT_MS,
      ...(this.#options.random === undefined ? {} : { random: this.#options.random }),
    });
    for (let tries = 1; ; tries++) {
      const sent = await this.#options.send(request);
      // Counted as lost when the time was over.
      if (this.#ended) return;
      if (sent.kind === "later" && tries < MAX_TRIES) {
        await this.#wait(Math.max(backoff.next(), Math.min(sent.afterMs ?? 0, LONGEST_ASKED_WAIT_MS)));
        if (this.#ended) return;
        continue;
      }
      if (sent.kind === "taken") this.#drop(Math.min(sent.rejected, records), `rejected: ${sent.message}`);
      else this.#drop(records, sent.reason);
      break;
    }
    this.#sending--;
    this.#records -= records;
    this.#bytes -= bytes;
    if (this.#records === 0) this.#rest();
    this.#next();
  }

  #rest(): void {
    this.#options.onBusy(this, false);
    this.#idle.resolve();
    this.#idle = Promise.withResolvers();
  }

  #wait(ms: number): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const cancel = this.#options.clock.after(ms, wake.bind(this));
    this.#wakers.add(wake);
    function wake(): void {
      resolve();
    }
    return promise.finally(() => {
      cancel();
      this.#wakers.delete(wake);
    });
  }

  #end(): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#cancelTimer?.();
    this.#drop(this.#records, "the data plane ends");
    this.#open = undefined;
    this.#closed = [];
    if (this.#records > 0) this.#options.onBusy(this, false);
    this.#records = 0;
    this.#bytes = 0;
    for (const wake of this.#wakers) wake();
  }

  /** Counted at once; told at most once in a while. */
  #drop(records: number, reason: string): void {
    if (records === 0) return;
    const { clock, log, collector, onDropped } = this.#options;
    onDropped(records);
    this.#unlogged += records;
    if (clock.now() < this.#silentUntilMs) return;
    log.warn("telemetry was lost", { collector, records: this.#unlogged, reason });
    this.#unlogged = 0;
    this.#silentUntilMs = clock.now() + LOG_INTERVAL_MS;
  }
}
