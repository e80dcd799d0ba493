/**
 * The guard `regex`: patterns of the user in RE2 syntax, and built-in entities. The patterns come first; each works on
 * what the ones before it have left. They run on the engine of the expression language, in time linear in the text.
 */
import {
  BuiltinPattern,
  GuardAction,
  type RegexGuard,
} from "../../../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { REQUEST_STEPS, Run } from "../../../../cel/budget.ts";
import { Failure } from "../../../../cel/errors.ts";
import { findMatches, type Span } from "../../../../cel/functions/match-finder.ts";
import { compilePattern, type Regex } from "../../../../cel/functions/regex.ts";
import { ConfigError } from "../../../../lib/errors.ts";
import { ProxyError } from "../../../exchange/errors.ts";
import { PASS, REJECT, type Check, type GuardDeps } from "../guard.ts";
import { caSin } from "./ca-sin.ts";
import { creditCard } from "./credit-card.ts";
import { email } from "./email.ts";
import { digitRuns, type Entity } from "./entity.ts";
import { phoneNumber } from "./phone-number.ts";
import { ssn } from "./ssn.ts";

const ENTITIES: ReadonlyMap<BuiltinPattern, Entity> = new Map([
  [BuiltinPattern.SSN, ssn],
  [BuiltinPattern.CREDIT_CARD, creditCard],
  [BuiltinPattern.PHONE_NUMBER, phoneNumber],
  [BuiltinPattern.EMAIL, email],
  [BuiltinPattern.CA_SIN, caSin],
]);

const MASK = "<masked>";
/**
 * Steps per character of a text, besides the steps of a small evaluation. A pattern needs a step for 64 characters
 * where it does not match, and about two for each character near a match.
 */
const STEPS_PER_CHARACTER = 4;

/** @throws ConfigError for a built-in that this version does not know */
export function compileRegex({ matches, builtins }: RegexGuard, deps: GuardDeps, action: GuardAction): Check {
  const patterns = matches.flatMap((source) => compileMatch(source, deps));
  const entities = builtins.map(entityOf);
  if (patterns.length + entities.length === 0) return () => PASS;
  if (action === GuardAction.REJECT)
    return ({ texts }) => (texts.some(({ text }) => occurs(patterns, entities, text)) ? REJECT : PASS);
  return ({ texts }) => {
    const changes = texts.flatMap((text) => {
      const masked = mask(patterns, entities, text.text);
      return masked === text.text ? [] : [{ text, masked }];
    });
    return changes.length === 0 ? PASS : { action: "mask", changes };
  };
}

function compileMatch(source: string, { log, owner }: GuardDeps): Regex[] {
  const pattern = compilePattern(source);
  if (!(pattern instanceof Failure)) return [pattern];
  log.warn("pattern of a prompt guard left out", { backend: owner, pattern: source, reason: pattern.message });
  return [];
}

function entityOf(value: BuiltinPattern): Entity {
  const entity = ENTITIES.get(value);
  if (entity === undefined) throw new ConfigError("a prompt guard with an unknown built-in pattern");
  return entity;
}

function occurs(patterns: readonly Regex[], entities: readonly Entity[], text: string): boolean {
  return patterns.some((pattern) => spansOf(pattern, text).length > 0) || entities.some((entity) => isIn(entity, text));
}

function isIn(entity: Entity, text: string): boolean {
  return entity.find(text, digitRuns(text)).length > 0;
}

function mask(patterns: readonly Regex[], entities: readonly Entity[], source: string): string {
  let text = source;
  for (const pattern of patterns) text = replaceSpans(text, spansOf(pattern, text), MASK);
  let digits = entities.length === 0 ? [] : digitRuns(text);
  for (const entity of entities) {
    const spans = entity.find(text, digits);
    if (spans.length === 0) continue;
    text = replaceSpans(text, spans, entity.mask);
    digits = digitRuns(text);
  }
  return text;
}

/** @throws ProxyError when the search needs more steps than a text of this length may take */
function spansOf(pattern: Regex, text: string): Span[] {
  const run = new Run({ root: () => undefined }, 0, REQUEST_STEPS + STEPS_PER_CHARACTER * text.length);
  const spans = findMatches(run, text, pattern);
  // To let the text pass would be a guess.
  if (spans instanceof Failure) throw new ProxyError("guard_failed", { detail: "a pattern takes too long" });
  return spans;
}

function replaceSpans(text: string, spans: readonly Span[], mask: string): string {
  if (spans.length === 0) return text;
  let result = "";
  let at = 0;
  for (const { start, end } of spans) {
    result += text.slice(at, start) + mask;
    at = end;
  }
  return result + text.slice(at);
}
