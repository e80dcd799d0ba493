/**
 * Parses text that should be a JSON object and may be a secret: the error of JSON.parse quotes the text, so it is
 * dropped and the caller reports the failure in its own words.
 */
import { isRecord } from "./is-record.ts";

/** @returns undefined for text that is not JSON, and for any other JSON value */
export function parseJsonObject(text: string): Readonly<Record<string, unknown>> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return isRecord(value) ? value : undefined;
  } catch {
    return undefined;
  }
}
