/**
 * Regular expressions of routes: RE2 syntax, and a match covers the whole value. They run on the automaton of expressions
 * with its bounds, so that no text keeps the event loop busy; a pattern that is only text becomes a comparison.
 */
import { REQUEST_STEPS, Run } from "../../cel/budget.ts";
import { patternFault } from "../../cel/check/constants.ts";
import { Failure } from "../../cel/errors.ts";
import { compileWholePattern } from "../../cel/functions/regex.ts";
import { ConfigError } from "../../lib/errors.ts";
import { ProxyError } from "../errors.ts";

/** @throws ProxyError when the text needs more work than one match may do */
export type TextTest = (value: string) => boolean;

const ONLY_TEXT = /^[\w\-/ ~:@!%&=,;'"<>#`]{0,4096}$/;

/** @throws ConfigError when the pattern is not RE2, or is out of bounds */
export function compilePattern(pattern: string): TextTest {
  if (ONLY_TEXT.test(pattern)) return (value) => value === pattern;
  const automaton = compileWholePattern(pattern);
  if (automaton instanceof Failure)
    throw new ConfigError(
      `regular expression ${JSON.stringify(pattern)}: ${patternFault(pattern) ?? automaton.message}`,
    );
  // One for all requests: a match runs to its end before the next one begins.
  const run = new Run({ root: () => undefined }, 0, REQUEST_STEPS);
  return (value) => {
    run.steps = REQUEST_STEPS;
    const isMatch = automaton.test(run, value);
    // "No match" would be a guess, and could send the request where it must not go.
    if (isMatch instanceof Failure) throw new ProxyError("match_costly", { detail: `regular expression ${pattern}` });
    return isMatch;
  };
}
