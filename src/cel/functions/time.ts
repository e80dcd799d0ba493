/**
 * Parses timestamps and durations, and returns their parts in a time zone; the time functions of the CEL standard
 * library.
 */
import { checkedDuration, checkedTimestamp } from "../arithmetic.ts";
import type { CelFunction, Declaration } from "../function.ts";
import { COST_LIMIT, Failure, INVALID_ARGUMENT, NO_OVERLOAD } from "../errors.ts";
import { Duration, Timestamp } from "../values.ts";

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

/** Parses a duration as Go writes it: "1h30m", "1.5s", "-3ms". */
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

const TIMESTAMP = /^(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)(?:\.(\d+))?(?:Z|([+-])([01]\d|2[0-3]):([0-5]\d))$/i;
/** Bounds the digits of a fraction, far beyond practical use; a timestamp keeps nine. */
const MAX_TIMESTAMP_LENGTH = 128;

/**
 * Parses the `date-time` of RFC 3339 §5.6. It rejects dates that do not exist: Date.parse would move February 29th of a
 * common year to March and 24:00 to the next day. It also rejects leap seconds, as cel-go does, because a Timestamp
 * cannot hold them.
 */
export function parseTimestamp(text: string): Timestamp | Failure {
  const match = text.length > MAX_TIMESTAMP_LENGTH ? null : TIMESTAMP.exec(text);
  if (match === null) return INVALID_ARGUMENT;
  const [year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0] = match.slice(1, 7).map(Number);
  const [, , , , , , , fraction = "", sign, offsetHours = "0", offsetMinutes = "0"] = match;
  if (month < 1 || month > 12 || day < 1 || day > daysOfMonth(year, month)) return INVALID_ARGUMENT;
  if (hour > 23 || minute > 59 || second > 59) return INVALID_ARGUMENT;
  const offset = (Number(offsetHours) * 60 + Number(offsetMinutes)) * 60;
  const local = utcMs(year, month - 1, day) / 1000 + (hour * 60 + minute) * 60 + second;
  return checkedTimestamp(local - (sign === "-" ? -offset : offset), Number(fraction.slice(0, 9).padEnd(9, "0")));
}

function daysOfMonth(year: number, month: number): number {
  return new Date(utcMs(year, month, 0)).getUTCDate();
}

/** Works like Date.UTC, which reads the years 0 to 99 as 1900 to 1999. */
function utcMs(year: number, month: number, day: number): number {
  return new Date(0).setUTCFullYear(year, month, day);
}

const MAX_ZONES = 600;
/** Steps for the parts of a date in a named zone, and for a zone that is used for the first time. */
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

const OFFSET = /^([+-]?)(\d\d):(\d\d)$/;

/** Tells whether timestamps can be converted to the zone. */
export function isTimeZone(zone: string): boolean {
  return OFFSET.test(zone) || zone === "UTC" || zone === "" || zoneFormat(zone) !== undefined;
}

/** Returns a Date whose UTC parts are the local parts in the zone; undefined for an unknown zone. */
function localDate({ seconds }: Timestamp, zone: string): Date | undefined {
  const offset = OFFSET.exec(zone);
  if (offset !== null) {
    const distance = Number(offset[2]) * 3600 + Number(offset[3]) * 60;
    return new Date((seconds + (offset[1] === "-" ? -distance : distance)) * 1000);
  }
  if (zone === "UTC" || zone === "") return new Date(seconds * 1000);
  const format = zoneFormat(zone);
  if (format === undefined) return undefined;
  const parts = new Map(format.formatToParts(new Date(seconds * 1000)).map(({ type, value }) => [type, Number(value)]));
  const part = (type: Intl.DateTimeFormatPartTypes): number => parts.get(type) ?? 0;
  const day = utcMs(part("year"), part("month") - 1, part("day"));
  return new Date(day + ((part("hour") * 60 + part("minute")) * 60 + part("second")) * 1000);
}

function dayOfYear(date: Date): number {
  return Math.floor((date.getTime() - utcMs(date.getUTCFullYear(), 0, 1)) / 86_400_000);
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

/** Names of the methods that return a part of a time. */
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
    // "+ 0" turns negative zero into zero.
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
