/** Reads the answers of clouds that hold a bearer token, and writes such tokens; cloudB and cloudC use it. */
import type { HeaderList } from "../../../../lib/header-list.ts";
import { monotonicMs } from "../../../../lib/time/monotonic.ts";
import type { CalloutAnswer } from "../../../callouts/callout.ts";
import { ProxyError } from "../../../exchange/errors.ts";
import type { MaybePromise } from "../../../exchange/exchange.ts";
import type { FetchedToken } from "../../../tokens/token.ts";
import { parseAnswer } from "./parse-answer.ts";

/**
 * @param who for the log @param member that holds the token
 * @throws ProxyError credential_unavailable
 */
export function readBearer(answer: CalloutAnswer, who: string, member = "access_token"): FetchedToken<string> {
  const found = readObject(answer, who);
  const token = found[member];
  const fetchedAtMs = monotonicMs();
  return { value: checkToken(token, who), fetchedAtMs, expiresAtMs: fetchedAtMs + lifetimeOf(found) };
}

export function readObject({ status, body }: CalloutAnswer, who: string): Readonly<Record<string, unknown>> {
  if (status !== 200) throw unusable(`${who} answered with status ${status}`);
  const found = parseAnswer(body);
  if (found === undefined) throw unusable(`the answer of ${who} is not a JSON object`);
  return found;
}

/** @throws ProxyError credential_unavailable for what a header may not hold */
export function checkToken(token: unknown, who: string): string {
  if (typeof token === "string" && /^[\x21-\x7e]+$/.test(token)) return token;
  throw unusable(`${who} gave no usable token`);
}

/** Seconds, which some services write as text; some say when the token ends instead. */
function lifetimeOf(found: Readonly<Record<string, unknown>>): number {
  const seconds = Number(found["expires_in"] ?? NaN);
  if (seconds >= 0) return seconds * 1000;
  const end = Number(found["expires_on"] ?? NaN) * 1000;
  return Number.isNaN(end) ? 0 : end - Date.now();
}

export function placeBearer(token: MaybePromise<string>, headers: HeaderList, path: string): MaybePromise<string> {
  const write = (text: string): string => {
    headers.set("authorization", `Bearer ${text}`);
    return path;
  };
  return typeof token === "string" ? write(token) : token.then(write);
}

export function unusable(detail: string): ProxyError {
  return new ProxyError("credential_unavailable", { detail });
}
