/** Turns the growing counts of successive answers into rates, for the small chart of the overview. */
import type { TrafficData } from "../data.ts";

export interface TrafficSample extends TrafficData {
  readonly atMs: number;
}

export interface TrafficRate {
  readonly requestsPerSecond: number;
  /** Share of requests that failed, from 0 to 1; 0 without requests. */
  readonly failedShare: number;
}

const MAX_SAMPLES = 61;

/** Appends a sample and drops the oldest; counts that fell belong to a new process, so that the list begins again. */
export function addSample(samples: readonly TrafficSample[], sample: TrafficSample): TrafficSample[] {
  const last = samples.at(-1);
  if (last !== undefined && (sample.requests < last.requests || sample.atMs <= last.atMs)) return [sample];
  return [...samples, sample].slice(-MAX_SAMPLES);
}

/** Returns a rate for each pair of neighbours. */
export function ratesOf(samples: readonly TrafficSample[]): TrafficRate[] {
  return samples.slice(1).map((sample, at) => {
    const before = samples[at] ?? sample;
    const requests = sample.requests - before.requests;
    const seconds = (sample.atMs - before.atMs) / 1000;
    const failed = sample.failed - before.failed;
    return { requestsPerSecond: requests / seconds, failedShare: requests === 0 ? 0 : failed / requests };
  });
}

/** Returns the points of a line through the values as the text of an SVG polyline, from the left to the right edge. */
export function linePoints(values: readonly number[], width: number, height: number): string {
  const highest = Math.max(1e-9, ...values);
  const step = values.length > 1 ? width / (values.length - 1) : 0;
  return values
    .map((value, at) => `${(at * step).toFixed(1)},${(height - (value / highest) * height).toFixed(1)}`)
    .join(" ");
}
