/** What every kind of fetched credential has in common: a value with an end, and who fetches it. */

/** A credential as it came. The times are of `monotonicMs`, which all threads share. */
export interface FetchedToken<T> {
  /** Text or a plain object, so that it can be handed to another thread. */
  readonly value: T;
  readonly fetchedAtMs: number;
  readonly expiresAtMs: number;
}

export interface TokenRequest {
  /** A digest of everything that changes the answer, unique in the process. */
  readonly key: string;
  /** Time for which a token has to be good in order to be kept. */
  readonly marginMs: number;
  /** Only a token that was fetched later than this one is wanted; undefined for any. */
  readonly fetchedAfterMs: number | undefined;
}

/** Lets one thread of the replica fetch, and gives what came to all that ask for the same. */
export interface TokenBroker {
  /** Rejects with the error of `fetch`, of whichever thread. */
  obtain<T>(request: TokenRequest, fetch: () => Promise<FetchedToken<T>>): Promise<FetchedToken<T>>;
}

/** For a data plane of one thread: a TokenCache itself joins requests for the same. */
export const directBroker: TokenBroker = { obtain: (_request, fetch) => fetch() };
