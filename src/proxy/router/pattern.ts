/**
 * Regular expressions in the matches of routes: RE2 syntax, and a match has to cover the whole value. They run on the
 * automaton of the expression language with its bounds on work, so that no value can keep the event loop busy (ReDoS).
 * A pattern without special characters becomes a string comparison.
 */
import { REQUEST_STEPS, Run } from "../../cel/budget.ts";
import { findPatternError } from "../../cel/check/constants.ts";
import { Failure } from "../../cel/errors.ts";
import { compileWholePattern } from "../../cel/functions/regex.ts";
import { ConfigError } from "../../lib/errors.ts";
import { ProxyError } from "../exchange/errors.ts";

/** @throws ProxyError when the value needs more steps than one match may take */
export type TextTest = (value: string) => boolean;

const ONLY_TEXT = /^[\w\-/ ~:@!%&=,;'"<>#`]{0,4096}$/;

/** @throws ConfigError when the pattern is not RE2 or exceeds the bounds */
export function compilePattern(pattern: string): TextTest {
  if (ONLY_TEXT.test(pattern)) return (value) => value === pattern;
  const automaton = compileWholePattern(pattern);
  if (automaton instanceof Failure)
    throw new ConfigError(
      `regular expression ${JSON.stringify(pattern)}: ${findPatternError(pattern) ?? automaton.message}`,
    );
  // All requests share one run, because a match never pauses before its end.
  const run = new Run({ root: () => undefined }, 0, REQUEST_STEPS);
  return (value) => {
    run.steps = REQUEST_STEPS;
    const isMatch = automaton.test(run, value);
    // "No match" would be a guess, and could route the request to a backend that must not get it.
    if (isMatch instanceof Failure) throw new ProxyError("match_costly", { detail: `regular expression ${pattern}` });
    return isMatch;
  };
}
