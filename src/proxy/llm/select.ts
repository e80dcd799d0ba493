/**
 * Which provider serves a request: in the first group that has members, two are drawn at random, the same one perhaps
 * twice so that the worst is never starved, and the better score wins.
 */

/** Weight of the newest sample in both moving averages. */
const NEWEST = 0.3;

export class ProviderHealth {
  #health = 1;
  #latencySeconds = 0;
  #inFlight = 0;

  get score(): number {
    return this.#health / (1 + this.#latencySeconds * (1 + 0.1 * this.#inFlight));
  }

  begin(): void {
    this.#inFlight++;
  }

  /** The head of an answer came, or none ever will. */
  sample(healthy: boolean, latencyMs: number): void {
    this.#health += NEWEST * ((healthy ? 1 : 0) - this.#health);
    this.#latencySeconds += NEWEST * (latencyMs / 1000 - this.#latencySeconds);
  }

  end(): void {
    this.#inFlight--;
  }
}

/** @param random in [0, 1) @returns undefined when no group has members */
export function selectProvider<T extends { readonly health: ProviderHealth }>(
  groups: readonly (readonly T[])[],
  random: () => number = Math.random,
): T | undefined {
  const group = groups.find(({ length }) => length > 0);
  if (group === undefined) return undefined;
  if (group.length === 1) return group[0];
  const draw = (): T => group[Math.floor(random() * group.length)] as T;
  const [one, other] = [draw(), draw()];
  return other.health.score > one.health.score ? other : one;
}
