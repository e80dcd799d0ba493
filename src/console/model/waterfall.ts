/** Lays out the events of a traced request as a waterfall: a row for each step, placed by its time. */
import { describeEvent } from "./describe-event.ts";
import type { Severity, TraceEvent } from "./trace.ts";

export interface WaterfallRow {
  readonly event: TraceEvent;
  readonly title: string;
  readonly detail: string;
  readonly severity: Severity;
  readonly depth: number;
  /** Shares of the whole width, from 0 to 1. An instant has the width 0. */
  readonly left: number;
  readonly width: number;
  readonly isInstant: boolean;
  readonly startUs: number;
  readonly durationUs: number;
}

export interface Waterfall {
  readonly rows: readonly WaterfallRow[];
  readonly totalUs: number;
  /** Times of the lines behind the bars. */
  readonly ticksUs: readonly number[];
}

const MAX_DEPTH = 6;

/** Events arrive when their step ends; rows stand in the order in which steps began, and outer steps come first. */
export function layoutWaterfall(events: readonly TraceEvent[]): Waterfall {
  const totalUs = Math.max(1, ...events.map(({ eventEnd }) => eventEnd));
  const rows = events.map((event): WaterfallRow => {
    const startUs = event.eventStart ?? event.eventEnd;
    const durationUs = event.eventEnd - startUs;
    return {
      event,
      ...describeEvent(event.message),
      severity: event.severity,
      depth: Math.min(event.scope.length, MAX_DEPTH),
      left: startUs / totalUs,
      width: durationUs / totalUs,
      isInstant: event.eventStart === null,
      startUs,
      durationUs,
    };
  });
  rows.sort((a, b) => rank(a) - rank(b) || a.startUs - b.startUs || a.depth - b.depth || b.durationUs - a.durationUs);
  return { rows, totalUs, ticksUs: chooseTicks(totalUs) };
}

/** The first and the last event hold the others, whatever their times are. */
function rank({ event: { message } }: WaterfallRow): number {
  if (message.type === "requestStarted") return 0;
  return message.type === "requestFinished" ? 2 : 1;
}

const MAX_TICKS = 5;

/** Returns up to five round times below the total: multiples of 1, 2 or 5 times a power of ten. */
export function chooseTicks(totalUs: number): number[] {
  const power = 10 ** Math.max(0, Math.floor(Math.log10(totalUs / MAX_TICKS)));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((size) => totalUs / size <= MAX_TICKS) ?? totalUs;
  const ticks: number[] = [];
  for (let at = 1; at * step < totalUs && ticks.length < MAX_TICKS; at++) ticks.push(at * step);
  return ticks;
}
