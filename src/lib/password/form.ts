/**
 * Recognizes the formats of password hashes that htpasswd and crypt(3) write, and limits their cost. It computes no
 * hash, so the translator can judge a line with it. Plain text is not accepted.
 */

export type PasswordForm = "sha1" | "apr1" | "bcrypt" | "sha256-crypt" | "sha512-crypt" | "des-crypt";

/**
 * A check costs what the hash demands, and any client may guess: 2^14 rounds of bcrypt take about a second of one core.
 */
const MAX_BCRYPT_COST = 14;
/** This many rounds take about a second as well. */
const MAX_SHA_ROUNDS = 500_000;
const MIN_SHA_ROUNDS = 1_000;
const DEFAULT_SHA_ROUNDS = 5_000;

const FORMS: readonly (readonly [PasswordForm, RegExp])[] = [
  ["sha1", /^\{SHA\}[A-Za-z0-9+/]{27}=$/],
  ["apr1", /^\$apr1\$[^$:\s]{1,8}\$[./0-9A-Za-z]{22}$/],
  ["bcrypt", /^\$2[aby]\$[0-9]{2}\$[./0-9A-Za-z]{53}$/],
  ["sha256-crypt", /^\$5\$(?:rounds=[0-9]{1,9}\$)?[^$:\s]{1,16}\$[./0-9A-Za-z]{43}$/],
  ["sha512-crypt", /^\$6\$(?:rounds=[0-9]{1,9}\$)?[^$:\s]{1,16}\$[./0-9A-Za-z]{86}$/],
  ["des-crypt", /^[./0-9A-Za-z]{13}$/],
];

/** @returns undefined when the text has none of the formats */
export function formOf(hash: string): PasswordForm | undefined {
  return FORMS.find(([, pattern]) => pattern.test(hash))?.[0];
}

/** @returns the reason why a hash cannot be used, without repeating any part of it; undefined when it can be used */
export function findHashError(hash: string): string | undefined {
  switch (formOf(hash)) {
    case undefined:
      return "the hash is in no known form ($apr1$, $2y$, {SHA}, $5$, $6$, crypt); make one with htpasswd -B";
    case "bcrypt": {
      const cost = Number(hash.slice(4, 6));
      return cost >= 4 && cost <= MAX_BCRYPT_COST ? undefined : `the cost of bcrypt must be 4 to ${MAX_BCRYPT_COST}`;
    }
    case "sha256-crypt":
    case "sha512-crypt":
      return shaRounds(hash) <= MAX_SHA_ROUNDS ? undefined : `rounds must be at most ${MAX_SHA_ROUNDS}`;
    default:
      return undefined;
  }
}

/** Returns the rounds of a `$5$` or `$6$` hash; fewer than a thousand count as a thousand. */
export function shaRounds(hash: string): number {
  const rounds = /^\$[56]\$rounds=([0-9]+)\$/.exec(hash)?.[1];
  return rounds === undefined ? DEFAULT_SHA_ROUNDS : Math.max(MIN_SHA_ROUNDS, Number(rounds));
}
