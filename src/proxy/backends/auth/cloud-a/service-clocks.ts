/**
 * The clocks of services that refused a signature because ours is minutes away, as SDKs remember them. A signature holds
 * for five minutes around the time that it names.
 */
import { RecentMap } from "../../../../lib/recent-map.ts";

const SKEW_MS = 240_000;
/** A service that is further away has no clock that could be followed. */
const MAX_SKEW_MS = 86_400_000;
const MAX_HOSTS = 256;

export class ServiceClocks {
  readonly #offsets = new RecentMap<string, number>(MAX_HOSTS);

  /** Returns the time at a host, as far as it is known. */
  nowMs(host: string): number {
    return Date.now() + (this.#offsets.get(host) ?? 0);
  }

  /** @param date of an answer @returns whether the time at the host was not what we took it for */
  correct(host: string, date: string | undefined): boolean {
    const theirsMs = Date.parse(date ?? "");
    const offsetMs = theirsMs - Date.now();
    if (!(Math.abs(theirsMs - this.nowMs(host)) >= SKEW_MS) || Math.abs(offsetMs) > MAX_SKEW_MS) return false;
    this.#offsets.set(host, offsetMs);
    return true;
  }
}
