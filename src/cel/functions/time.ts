/** Timestamps and durations: reading them from text, and their parts in a time zone. */
import { checkedDuration, checkedTimestamp } from "../arithmetic.ts";
import type { CelFunction } from "../environment.ts";
import { COST_LIMIT, Failure, INVALID_ARGUMENT, NO_OVERLOAD } from "../errors.ts";
import { Duration, Timestamp } from "../values.ts";
import type { Declaration } from "./table.ts";

const NANOS_PER_UNIT: ReadonlyMap<string, bigint> = new Map([
  ["ns", 1n],
  ["us", 1000n],
  ["µs", 1000n],
  ["ms", 1_000_000n],
  ["s", 1_000_000_000n],
  ["m", 60_000_000_000n],
  ["h", 3_600_000_000_000n],
]);
const DURATION = /^([+-]?)((?:(?:\d+\.?\d*|\.\d+)(?:ns|us|µs|ms|s|m|h))+|0)$/;
const FRACTION_DIGITS = 12;
const MAX_DURATION_LENGTH = 64;

/** Text as in Go: "1h30m", "1.5s", "-3ms". */
export function parseDuration(text: string): Duration | Failure {
  const match = text.length > MAX_DURATION_LENGTH ? null : DURATION.exec(text);
  if (match === null) return INVALID_ARGUMENT;
  let nanos = 0n;
  for (const [, whole, decimals, unit = ""] of (match[2] as string).matchAll(/(\d*)(?:\.(\d*))?(ns|us|µs|ms|s|m|h)/g)) {
    const factor = NANOS_PER_UNIT.get(unit) ?? 0n;
    nanos += BigInt(whole || 0) * factor;
    if (decimals) {
      const scaled = BigInt(decimals.slice(0, FRACTION_DIGITS).padEnd(FRACTION_DIGITS, "0"));
      nanos += (scaled * factor) / 10n ** BigInt(FRACTION_DIGITS);
    }
  }
  if (match[1] === "-") nanos = -nanos;
  return checkedDuration(Number(nanos / 1_000_000_000n), Number(nanos % 1_000_000_000n));
}

const TIMESTAMP = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?(Z|[+-]\d\d:\d\d)$/i;

/** RFC 3339. */
export function parseTimestamp(text: string): Timestamp | Failure {
  const match = TIMESTAMP.exec(text);
  if (match === null) return INVALID_ARGUMENT;
  const ms = Date.parse(`${match[1]}${match[3]}`);
  if (Number.isNaN(ms)) return INVALID_ARGUMENT;
  return checkedTimestamp(ms / 1000, Number((match[2] ?? "").padEnd(9, "0")));
}

const MAX_ZONES = 600;
/** What the parts of a date in a named zone cost, and a zone that is asked for the first time. */
const ZONE_STEPS = 500;
const NEW_ZONE_STEPS = 4000;
const zones = new Map<string, Intl.DateTimeFormat>();

function zoneFormat(zone: string): Intl.DateTimeFormat | undefined {
  const known = zones.get(zone);
  if (known !== undefined) return known;
  if (zone.length > 64) return undefined;
  try {
    const format = new Intl.DateTimeFormat("en-US", {
      timeZone: zone,
      hourCycle: "h23",
      year: "numeric",
      month: "numeric",
      day: "numeric",
      hour: "numeric",
      minute: "numeric",
      second: "numeric",
    });
    if (zones.size < MAX_ZONES) zones.set(zone, format);
    return format;
  } catch {
    return undefined;
  }
}

/** A Date whose UTC parts are the local parts in the zone; undefined for an unknown zone. */
function localDate({ seconds }: Timestamp, zone: string): Date | undefined {
  const offset = /^([+-]?)(\d\d):(\d\d)$/.exec(zone);
  if (offset !== null) {
    const distance = Number(offset[2]) * 3600 + Number(offset[3]) * 60;
    return new Date((seconds + (offset[1] === "-" ? -distance : distance)) * 1000);
  }
  if (zone === "UTC" || zone === "") return new Date(seconds * 1000);
  const format = zoneFormat(zone);
  if (format === undefined) return undefined;
  const parts = new Map(format.formatToParts(new Date(seconds * 1000)).map(({ type, value }) => [type, Number(value)]));
  const part = (type: Intl.DateTimeFormatPartTypes): number => parts.get(type) ?? 0;
  return new Date(Date.UTC(part("year"), part("month") - 1, part("day"), part("hour"), part("minute"), part("second")));
}

function dayOfYear(date: Date): number {
  const start = Date.UTC(date.getUTCFullYear(), 0, 1);
  return Math.floor((Date.UTC(date.getUTCFullYear(), date.getUTCMonth(), date.getUTCDate()) - start) / 86_400_000);
}

type DatePart = (date: Date, timestamp: Timestamp) => number;

const DATE_PARTS: ReadonlyMap<string, DatePart> = new Map<string, DatePart>([
  ["getFullYear", (date) => date.getUTCFullYear()],
  ["getMonth", (date) => date.getUTCMonth()],
  ["getDate", (date) => date.getUTCDate()],
  ["getDayOfMonth", (date) => date.getUTCDate() - 1],
  ["getDayOfWeek", (date) => date.getUTCDay()],
  ["getDayOfYear", dayOfYear],
  ["getHours", (date) => date.getUTCHours()],
  ["getMinutes", (date) => date.getUTCMinutes()],
  ["getSeconds", (date) => date.getUTCSeconds()],
  ["getMilliseconds", (_date, { nanos }) => Math.trunc(nanos / 1_000_000)],
]);

/** The methods that yield a part of a time. */
export const TIME_PARTS: ReadonlySet<string> = new Set(DATE_PARTS.keys());

const DURATION_PARTS: ReadonlyMap<string, (duration: Duration) => number> = new Map([
  ["getHours", ({ seconds }: Duration) => Math.trunc(seconds / 3600)],
  ["getMinutes", ({ seconds }: Duration) => Math.trunc(seconds / 60)],
  ["getSeconds", ({ seconds }: Duration) => seconds],
  ["getMilliseconds", ({ nanos }: Duration) => Math.trunc(nanos / 1_000_000)],
]);

function getter(name: string, part: DatePart): CelFunction {
  const durationPart = DURATION_PARTS.get(name);
  return (run, value, zone) => {
    // "+ 0" turns a negative zero into zero.
    if (value instanceof Duration && durationPart !== undefined && zone === undefined) return durationPart(value) + 0;
    if (!(value instanceof Timestamp) || (zone !== undefined && typeof zone !== "string")) return NO_OVERLOAD;
    if (zone !== undefined && run.spend(zones.has(zone) ? ZONE_STEPS : NEW_ZONE_STEPS)) return COST_LIMIT;
    const date = localDate(value, zone ?? "UTC");
    return date === undefined ? INVALID_ARGUMENT : part(date, value);
  };
}

export const TIME_FUNCTIONS: readonly Declaration[] = [...DATE_PARTS].flatMap(([name, part]): Declaration[] => {
  const receiver = DURATION_PARTS.has(name) ? "timestamp | duration" : "timestamp";
  return [
    [`.${name}(${receiver}): int`, getter(name, part)],
    [`.${name}(timestamp, string): int`, getter(name, part)],
  ];
});
