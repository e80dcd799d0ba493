/** Reads the JSON object of an answer; the kinds that fetch use it. */
import { isRecord } from "../../../../lib/is-record.ts";

/** @returns undefined for anything but a JSON object */
export function parseAnswer(body: Buffer): Readonly<Record<string, unknown>> | undefined {
  try {
    const value: unknown = JSON.parse(body.toString());
    return isRecord(value) ? value : undefined;
  } catch {
    return undefined; // the caller says whose answer it was
  }
}
