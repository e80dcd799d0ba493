/**
 * A strict parser of the Prometheus text format 0.0.4 and of OpenMetrics 1.0. Tests of metrics use it. It accepts only
 * what both specifications allow a server to send, and throws with the offending line.
 */

export interface Sample {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

export interface Family {
  readonly name: string;
  readonly type: string;
  readonly help: string;
  readonly samples: readonly Sample[];
}

const NAME = /^[a-zA-Z_:][a-zA-Z0-9_:]*/;
const LABEL = /^[a-zA-Z_][a-zA-Z0-9_]*/;
const NUMBER = /^(?:[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?|[+-]Inf|NaN)$/;

interface Open extends Family {
  readonly samples: Sample[];
}

export function parseExposition(text: string, format: "prometheus" | "openmetrics"): Map<string, Family> {
  if (!text.endsWith("\n")) throw new Error("the last line does not end");
  const lines = text.slice(0, -1).split("\n");
  if (format === "openmetrics" && lines.pop() !== "# EOF") throw new Error("no # EOF at the end");
  const families = new Map<string, Open>();
  const seen = new Set<string>();
  let open: Open | undefined;
  let help: { readonly name: string; readonly text: string } | undefined;
  for (const line of lines) {
    const comment = /^# (HELP|TYPE|EOF)(?: (\S+) (.*))?$/.exec(line);
    if (comment?.[1] === "HELP") help = { name: comment[2] ?? "", text: comment[3] ?? "" };
    else if (comment?.[1] === "TYPE") {
      const name = comment[2] ?? "";
      if (NAME.exec(name)?.[0] !== name) throw new Error(`no name of a metric: ${line}`);
      if (families.has(name)) throw new Error(`a family in two pieces: ${line}`);
      if (help?.name !== name) throw new Error(`no help for it: ${line}`);
      families.set(name, (open = { name, type: comment[3] ?? "", help: help.text, samples: [] }));
    } else if (line.startsWith("#") || line === "") throw new Error(`not expected: ${JSON.stringify(line)}`);
    else {
      const sample = parseSample(line);
      if (open === undefined || !belongs(sample.name, open, format)) throw new Error(`outside of its family: ${line}`);
      const identity = JSON.stringify([sample.name, Object.entries(sample.labels).sort()]);
      if (seen.has(identity)) throw new Error(`said twice: ${line}`);
      seen.add(identity);
      open.samples.push(sample);
    }
  }
  for (const family of families.values()) check(family);
  return families;
}

function belongs(sample: string, { name, type }: Family, format: string): boolean {
  switch (type) {
    case "counter":
      // OpenMetrics names a counter family without the `_total` of its samples.
      return sample.endsWith("_total") && sample === (format === "openmetrics" ? `${name}_total` : name);
    case "gauge":
      return sample === name;
    case "histogram":
      return [`${name}_bucket`, `${name}_sum`, `${name}_count`].includes(sample);
    default:
      throw new Error(`a type that is not used: ${type}`);
  }
}

function parseSample(line: string): Sample {
  const name = NAME.exec(line)?.[0] ?? "";
  let rest = line.slice(name.length);
  const labels: Record<string, string> = {};
  if (rest.startsWith("{")) rest = parseLabels(rest.slice(1), labels, line);
  const number = /^ (\S+)$/.exec(rest)?.[1] ?? "";
  if (name === "" || !NUMBER.test(number)) throw new Error(`no sample: ${line}`);
  return { name, labels, value: number === "+Inf" ? Infinity : number === "-Inf" ? -Infinity : Number(number) };
}

/** @returns the text after the closing brace */
function parseLabels(text: string, labels: Record<string, string>, line: string): string {
  let rest = text;
  for (;;) {
    const label = LABEL.exec(rest)?.[0] ?? "";
    const value = /^="((?:[^"\\\n]|\\["\\n])*)"/.exec(rest.slice(label.length));
    if (label === "" || value === null) throw new Error(`no label: ${line}`);
    if (Object.hasOwn(labels, label)) throw new Error(`the label ${label} twice: ${line}`);
    const unescaped = (value[1] ?? "").replaceAll(/\\(.)/g, (_all, one: string) => (one === "n" ? "\n" : one));
    if (!unescaped.isWellFormed()) throw new Error(`text that is not Unicode: ${line}`);
    labels[label] = unescaped;
    rest = rest.slice(label.length + value[0].length);
    if (rest.startsWith("}")) return rest.slice(1);
    if (!rest.startsWith(",")) throw new Error(`no end of the labels: ${line}`);
    rest = rest.slice(1);
  }
}

/** Checks that the buckets of a histogram ascend and that the last one equals the count. */
function check({ name, type, samples }: Family): void {
  if (type === "counter" && samples.some(({ value }) => !(value >= 0))) throw new Error(`${name} is less than nothing`);
  if (type !== "histogram") return;
  const series = Map.groupBy(samples, ({ labels: { le: _le, ...labels } }) => JSON.stringify(labels));
  for (const [labels, all] of series) {
    const buckets = all.filter((sample) => sample.name === `${name}_bucket`);
    const bounds = buckets.map(({ labels: { le } }) => (le === "+Inf" ? Infinity : Number(le)));
    const ascends = (values: readonly number[]): boolean => values.every((value, at) => value >= (values[at - 1] ?? 0));
    const last = buckets.at(-1);
    const count = all.find((sample) => sample.name === `${name}_count`);
    const isWhole = bounds.at(-1) === Infinity && ascends(bounds) && ascends(buckets.map(({ value }) => value));
    if (!isWhole || last?.value !== count?.value || !all.some((sample) => sample.name === `${name}_sum`))
      throw new Error(`${name} has no sensible buckets for ${labels}`);
  }
}
