/** Reads the metrics of a data plane in this process, as a scraper would. */
import { setImmediate } from "node:timers/promises";
import { createMetrics, type Metrics } from "../../../src/telemetry/metrics.ts";
import { parseExposition, type Family, type Sample } from "./exposition.ts";

export interface Measured {
  /** Metrics to pass as `telemetry` of a data plane. */
  readonly metrics: Metrics;
  /** Returns the current samples of `gwproxy_<name>` whose series have these labels. */
  read(name: string, labels?: Readonly<Record<string, string>>): readonly Sample[];
  /**
   * Returns the samples once their sum reaches `total`; a request is counted a moment after its last byte has arrived.
   */
  counted(name: string, total: number, labels?: Readonly<Record<string, string>>): Promise<readonly Sample[]>;
}

export function createMeasured(): Measured {
  const metrics = createMetrics("test");
  const read = (name: string, labels: Readonly<Record<string, string>> = {}): readonly Sample[] =>
    samplesOf(families(metrics), name).filter((sample) =>
      Object.entries(labels).every(([label, value]) => sample.labels[label] === value),
    );
  return {
    metrics,
    read,
    async counted(name, total, labels) {
      // The sum over all labels is an upper bound and cheap to compute.
      const mayBe = (): boolean => quickSum(metrics.print("prometheus"), `gwproxy_${name}{`) >= total;
      for (; ; await setImmediate()) {
        const samples = mayBe() ? read(name, labels) : [];
        if (sumOf(samples) >= total) return samples;
      }
    },
  };
}

/** Parses both formats strictly. */
function families(metrics: Metrics): Map<string, Family> {
  parseExposition(metrics.print("openmetrics"), "openmetrics");
  return parseExposition(metrics.print("prometheus"), "prometheus");
}

function samplesOf(all: ReadonlyMap<string, Family>, name: string): readonly Sample[] {
  return [...all.values()].flatMap(({ samples }) => samples.filter((sample) => sample.name === `gwproxy_${name}`));
}

export function sumOf(samples: readonly Sample[]): number {
  return samples.reduce((sum, { value }) => sum + value, 0);
}

function quickSum(text: string, prefix: string): number {
  const lines = text.split("\n").filter((line) => line.startsWith(prefix));
  return lines.reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(" "))), 0);
}
