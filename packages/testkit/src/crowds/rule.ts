/** Less than one history in a thousand million may fail by chance. */
const LEAST_CHANCE = 1e-9;

/**
 * What holds of the clients of one service with affinity, whatever happens to it: a client keeps its endpoint as long
 * as that was usable without a break; all others are spread by chance; and of a service that is gone nothing is known.
 */
export class AffinityRule {
  readonly #kept = new Map<string, string>();
  #usable: readonly string[] = [];
  #drawn = new Map<string, number>();

  /** The endpoints from now on. */
  endpoints(usable: readonly string[]): void {
    this.#usable = usable;
    this.#drawn = new Map();
    for (const [client, endpoint] of this.#kept) if (!usable.includes(endpoint)) this.#kept.delete(client);
  }

  /** The service is deleted, or its clients were away for too long. */
  forget(): void {
    this.#kept.clear();
  }

  /** A client that is known now, for another reason than a connection of before. */
  knows(client: string, endpoint: string): void {
    if (this.#usable.includes(endpoint)) this.#kept.set(client, endpoint);
  }

  /** How many clients have an endpoint that they have to keep. */
  get known(): number {
    return this.#kept.size;
  }

  /** @returns what is wrong with a connection that came to `end` */
  met(client: string, end: string): string | undefined {
    if (this.#usable.length === 0)
      return end.includes(":") ? `${client} came to ${end}; there is no endpoint` : undefined;
    if (!this.#usable.includes(end)) return `${client} came to ${end}, which is no endpoint`;
    const kept = this.#kept.get(client);
    if (kept === undefined) this.#drawn.set(end, (this.#drawn.get(end) ?? 0) + 1);
    this.#kept.set(client, end);
    return kept === undefined || kept === end ? undefined : `${client} came to ${end}; ${kept} is usable`;
  }

  /** @returns what is wrong with the shares of those that drew since the last change */
  shares(): string | undefined {
    const drawn = [...this.#drawn.values()].reduce((sum, count) => sum + count, 0);
    for (const endpoint of this.#usable) {
      const count = this.#drawn.get(endpoint) ?? 0;
      const chance = 2 * this.#usable.length * tail(drawn, 1 / this.#usable.length, count);
      if (chance < LEAST_CHANCE)
        return `${count} of ${drawn} drew ${endpoint}, one of ${this.#usable.length}: ${chance}`;
    }
    return undefined;
  }
}

/** The chance of a count at least as far from the mean, on its side. */
function tail(trials: number, chance: number, count: number): number {
  if (chance === 1) return count === trials ? 1 : 0;
  const above = count >= trials * chance;
  let sum = 0;
  for (let one = above ? count : 0; one <= (above ? trials : count); one++) {
    sum += Math.exp(logChoose(trials, one) + one * Math.log(chance) + (trials - one) * Math.log(1 - chance));
  }
  return sum;
}

function logChoose(n: number, k: number): number {
  let sum = 0;
  for (let one = 1; one <= k; one++) sum += Math.log(n - k + one) - Math.log(one);
  return sum;
}
