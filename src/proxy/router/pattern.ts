/**
 * Regular expressions of users. They run in linear time (RE2), cover the whole value, and never reach a backtracking
 * engine; a pattern that is only text becomes a comparison.
 */
import { RE2JS } from "re2js";
import { ConfigError, messageOf } from "../../lib/errors.ts";

export type TextTest = (value: string) => boolean;

const ONLY_TEXT = /^[\w\-/ ~:@!%&=,;'"<>#`]*$/;
const MAX_LENGTH = 4096;

/** @throws ConfigError when the pattern is not RE2 */
export function compilePattern(pattern: string): TextTest {
  if (pattern.length > MAX_LENGTH) throw new ConfigError(`regular expression longer than ${MAX_LENGTH} characters`);
  if (ONLY_TEXT.test(pattern)) return (value) => value === pattern;
  try {
    const compiled = RE2JS.compile(pattern);
    return (value) => compiled.matches(value);
  } catch (cause) {
    throw new ConfigError(`regular expression ${JSON.stringify(pattern)}: ${messageOf(cause)}`, { cause });
  }
}
