/**
 * Sends records to one collector, in batches and in the background (docs/telemetry.md). A slow, full or absent
 * collector costs records, which are counted, but never delays a request. The queue and the number of attempts are
 * bounded.
 *
 *   begin/add/end ─▶ open batch ──512 records, 1 MiB or delay──▶ closed batches ──at most 4──▶ send
 *                    (encoded bytes)                                               ▲             │ later
 *                                                                                  └── backoff ◀─┘
 *
 * A record counts against the queue (`#records`, `#bytes`) from the moment it is added until its batch is accepted,
 * rejected or given up, so a hanging collector fills the queue and new records are dropped. While all four slots are
 * busy, the open batch keeps filling instead of closing at its delay. `flush` ends the exporter: it sends what is
 * pending within a limit, counts the rest as lost, and accepts no more.
 */
import { createBackoff } from "../../lib/time/backoff.ts";
import type { Clock } from "../../lib/time/clock.ts";
import type { Logger } from "../../lib/log.ts";
import type { AttributeSink, AttributeValue } from "../attributes.ts";
import type { Span } from "../span.ts";
import { type Envelope, openLog, writeLogField, writeSpan } from "./encode.ts";
import type { LogHead, LogSink, SpanSink } from "./sinks.ts";
import { WireWriter } from "./wire-writer.ts";

/** The outcome of one request to a collector. */
export type ExportOutcome =
  /** Accepted; the collector may reject some of the records permanently. */
  | { readonly kind: "taken"; readonly rejected: number; readonly message: string }
  /** The collector may accept the same request later, not before `afterMs` if it asked for a delay. */
  | { readonly kind: "later"; readonly reason: string; readonly afterMs: number | undefined }
  | { readonly kind: "refused"; readonly reason: string };

export interface ExporterOptions {
  readonly envelope: Envelope;
  /** Makes one attempt; must settle in bounded time and never reject. */
  readonly send: (request: Buffer) => Promise<ExportOutcome>;
  /** How long the first record of a batch waits for others. */
  readonly delayMs: number;
  readonly clock: Clock;
  readonly log: Logger;
  /** Name of the collector, for the log. */
  readonly collector: string;
  readonly onDropped: (records: number) => void;
  /** Called when the exporter gets its first pending record, and when it has none left. */
  readonly onBusy: (exporter: Exporter, busy: boolean) => void;
  readonly random?: () => number;
}

const BATCH_RECORDS = 512;
const QUEUE_RECORDS = 2048;
/** Collectors accept requests of 4 MiB by default. */
const BATCH_BYTES = 1_048_576;
const RECORD_BYTES = 1_048_576;
const QUEUE_BYTES = 8 * BATCH_BYTES;
const FIRST_CAPACITY = 16_384;
/** As many as the queue has full batches. */
const MAX_SENDING = 4;
/** With the waits below about a minute, long enough for a collector to be replaced. */
const MAX_TRIES = 16;
const FIRST_WAIT_MS = 500;
const LONGEST_WAIT_MS = 5_000;
/** Longest delay that a collector may ask for. */
const LONGEST_ASKED_WAIT_MS = 30_000;
const LOG_INTERVAL_MS = 10_000;

/** A batch that is being filled. */
interface OpenBatch {
  readonly writer: WireWriter;
  records: number;
}

interface ClosedBatch {
  /** The complete request as it is sent. */
  readonly request: Buffer;
  readonly records: number;
  /** Size of the records. */
  readonly bytes: number;
}

export class Exporter implements LogSink, AttributeSink, SpanSink {
  readonly #options: ExporterOptions;
  #open: OpenBatch | undefined;
  #closed: ClosedBatch[] = [];
  #sending = 0;
  /** Records that are not settled yet, and their size. */
  #records = 0;
  #bytes = 0;
  #capacity = FIRST_CAPACITY;
  #begun: { readonly writer: WireWriter; readonly recordAt: number; readonly inner: number } | undefined;
  #cancelTimer: (() => void) | undefined;
  /** Wake the deliveries that wait for their next attempt. */
  readonly #wakers = new Set<() => void>();
  #idle = Promise.withResolvers<void>();
  /** Set by `flush`: new records are sent without waiting for others. */
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

  /** Adds a field to the record that was begun. */
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

  /**
   * Sends the pending records; resolves when they are settled or the limit has passed. The exporter then accepts no
   * more.
   */
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

  /** Removes a record that was begun but never ended because of an error in between. */
  #takeBack(): void {
    this.#begun?.writer.truncate(this.#begun.recordAt);
    this.#begun = undefined;
  }

  /** Returns the writer for this many records; undefined when there is no room, and they are counted as lost. */
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

  /** Keeps filling the batch while all sending slots are busy. */
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
    // The next batch will probably have a similar size.
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
    // Sends the open batch if its delay passed while all slots were busy.
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
      // The records were counted as lost when the exporter ended.
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

  /** Counts lost records at once, and logs them at most every ten seconds. */
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
