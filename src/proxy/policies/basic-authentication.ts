/**
 * Authenticates the client by user name and password (RFC 7617).
 *
 * Worker threads compute the password hashes, and verdicts are cached (LRU) under a salted digest: only the first
 * request of a client waits. Concurrent requests with the same credential from the same network share one check
 * (singleflight). Three measures against attackers:
 * - An unknown user costs as much as a known one, because its password is checked against the hash of some other user.
 * - Rejected credentials have a cache of their own, so guesses cannot evict the accepted ones.
 * - Checks take turns by policy and by the client's network (`lib/password/checker.ts`), so guesses do not delay other
 *   clients.
 */
import { hash, randomBytes } from "node:crypto";

import { AuthenticationMode, type BasicAuthentication } from "../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { ConfigError } from "../../lib/errors.ts";
import { clientNetwork } from "../../lib/network/ip-bytes.ts";
import { RecentMap } from "../../lib/recent-map.ts";
import { ProxyError } from "../exchange/errors.ts";
import type { Exchange, MaybePromise, Next, Reply } from "../exchange/exchange.ts";
import { sendChallenge } from "./shared/challenge.ts";
import { AMBIGUOUS, compileLocation } from "./shared/credential-location.ts";
import type { Policy, PolicyDeps } from "./policy.ts";

const MAX_REMEMBERED = 1024;
/** Limit of the credential in base64: the cost of a hash grows with the length of the password. */
const MAX_CREDENTIAL_LENGTH = 1024;
const BASE64 = /^[A-Za-z0-9+/]+={0,2}$/;

/** The user that the credential belongs to; undefined when it is rejected. */
type Verdict = { readonly username: string | undefined };

const NOBODY: Verdict = { username: undefined };

export const basicAuthentication: Policy<BasicAuthentication> = {
  compile({ mode, realm, users, location }, deps) {
    const place = compileLocation(location, deps);
    const challenge = `Basic realm="${quoted(realm)}"`;
    const missingPasses = mode !== AuthenticationMode.STRICT;
    const verify = compileVerifier(
      users.map(({ name, passwordHash }) => [name, passwordHash]),
      deps,
    );

    function settle(exchange: Exchange, { username }: Verdict, next: Next): MaybePromise<Reply> {
      if (username === undefined) return sendChallenge(exchange, place, challenge, { code: "basic_invalid" });
      place.strip(exchange);
      exchange.setRoot("basicAuth", { username });
      return next();
    }

    return function basicAuthentication(exchange, next) {
      const credential = place.read(exchange);
      if (credential === undefined) {
        if (missingPasses) return next();
        return sendChallenge(exchange, place, challenge, { code: "basic_missing" });
      }
      const verdict = credential === AMBIGUOUS ? NOBODY : verify(credential, exchange);
      if (!(verdict instanceof Promise)) return settle(exchange, verdict, next);
      return verdict.then((later) => settle(exchange, later, next));
    };
  },
};

/** Returns the verdict synchronously for a credential that was checked before. */
function compileVerifier(
  users: readonly (readonly [string, string])[],
  { passwords, owner }: PolicyDeps,
): (credential: string, exchange: Exchange) => MaybePromise<Verdict> {
  const hashes = new Map(users);
  const salt = randomBytes(16).toString("hex");
  const right = new RecentMap<string, Verdict>(MAX_REMEMBERED);
  // Kept apart from the accepted ones: guesses must not evict clients that know their password.
  const wrong = new RecentMap<string, Verdict>(MAX_REMEMBERED);
  const asked = new Map<string, Promise<Verdict>>();

  async function ask(digest: string, { username, password }: Credential, source: string): Promise<Verdict> {
    const known = hashes.get(username);
    const passwordHash = known ?? hashOfSomeUser(hash("sha256", salt + username, "buffer"), users);
    const fits = await passwords.check(password, passwordHash, { group: owner, source });
    if (fits === "overloaded") throw new ProxyError("basic_overloaded");
    const verdict = fits && known !== undefined ? { username } : NOBODY;
    (verdict === NOBODY ? wrong : right).set(digest, verdict);
    return verdict;
  }

  return (credential, exchange) => {
    if (credential.length > MAX_CREDENTIAL_LENGTH || users.length === 0) return NOBODY;
    const digest = hash("sha256", salt + credential, "base64");
    const known = right.get(digest) ?? wrong.get(digest);
    if (known !== undefined) return known;
    const parsed = parseCredential(credential);
    if (parsed === undefined) return NOBODY;
    // A client waits for the turn of its own network, even if another network sent the same credential.
    const source = clientNetwork(exchange.source.address);
    const question = `${digest} ${source}`;
    const before = asked.get(question);
    if (before !== undefined) return before;
    const verdict = ask(digest, parsed, source).finally(() => asked.delete(question));
    asked.set(question, verdict);
    return verdict;
  };
}

/**
 * Selects the hash that an unknown user is checked against. One name always gets the same hash, as a real user would.
 */
function hashOfSomeUser(digest: Buffer, users: readonly (readonly [string, string])[]): string {
  const at = digest.readUInt32BE(0) % users.length;
  return users[at]?.[1] ?? "";
}

interface Credential {
  readonly username: string;
  readonly password: Buffer;
}

function parseCredential(credential: string): Credential | undefined {
  if (!BASE64.test(credential)) return undefined;
  const bytes = Buffer.from(credential, "base64");
  const colon = bytes.indexOf(0x3a);
  if (colon < 0) return undefined;
  return { username: bytes.toString("utf8", 0, colon), password: bytes.subarray(colon + 1) };
}

/** @throws ConfigError for characters that a header cannot carry */
function quoted(realm: string): string {
  // oxlint-disable-next-line no-control-regex -- these are what must not be there
  if (/[\u0000-\u001f\u007f]/.test(realm)) throw new ConfigError("the realm holds a control character");
  return realm.replaceAll(/["\\]/g, String.raw`\$&`);
}
