/**
 * Sends a request that is signed last, and once more with the time of the other side where that refuses the signature
 * because the clocks are minutes apart. Everything that sends to a backend with `auth` uses it.
 */
import type { HeaderList } from "../../lib/header-list.ts";
import type { AuthCall, RequestAuth, UnsignedRequest } from "./auth.ts";

interface Answer {
  readonly status: number;
  readonly headers: HeaderList;
}

interface Signing {
  /** undefined when nothing is signed */
  readonly auth: Pick<RequestAuth, "sign" | "correctClock"> | undefined;
  readonly call: AuthCall;
  readonly request: UnsignedRequest;
}

/**
 * @param send sends the request with the headers that it then has
 * @param discard gets an answer that no one else will see
 * @throws ProxyError credential_unavailable, or what `send` throws
 */
export async function sendSigned<A extends Answer>(
  { auth, call, request }: Signing,
  send: () => Promise<A>,
  discard: (answer: A) => void,
): Promise<A> {
  const { sign, correctClock } = auth ?? {};
  if (sign === undefined) return send();
  await sign(call, request);
  const answer = await send();
  if (!isClockRefused(answer, (date) => correctClock?.(call.host, date) === true)) return answer;
  discard(answer);
  await sign(call, request);
  return send();
}

/** @param correct learns the time of the answer, and tells whether it was unknown */
export function isClockRefused({ status, headers }: Answer, correct: (date: string | undefined) => boolean): boolean {
  return (status === 403 || status === 400) && correct(headers.get("date"));
}
