/**
 * Calls a function again and again: the next time is counted from the end of a call, failures double the wait, and
 * nothing is called while the page is hidden.
 */

const MAX_WAIT_MS = 15_000;

export interface Poller {
  /** Calls at once, and begins to count anew. */
  poke(): void;
  stop(): void;
}

/**
 * @param call resolves to whether it succeeded
 * @param everyMs time between the end of a call and the next one
 */
export function startPolling(call: () => Promise<boolean>, everyMs: number): Poller {
  let timer: ReturnType<typeof setTimeout> | undefined;
  let waitMs = everyMs;
  let isRunning = false;
  let isStopped = false;
  /** Set by a poke during a call, whose answer is then out of date. */
  let isPoked = false;
  const run = async (): Promise<void> => {
    if (isStopped || document.hidden) return;
    isRunning = true;
    isPoked = false;
    waitMs = (await call()) ? everyMs : Math.min(waitMs * 2, MAX_WAIT_MS);
    isRunning = false;
    if (!isStopped) timer = setTimeout(() => void run(), isPoked ? 0 : waitMs);
  };
  const poke = (): void => {
    if (isRunning) isPoked = true;
    else {
      clearTimeout(timer);
      void run();
    }
  };
  const onVisibility = (): void => (document.hidden ? clearTimeout(timer) : poke());
  document.addEventListener("visibilitychange", onVisibility);
  poke();
  return {
    poke,
    stop() {
      isStopped = true;
      clearTimeout(timer);
      document.removeEventListener("visibilitychange", onVisibility);
    },
  };
}
