import type { PlanEndpoint, ServicePortGroup } from "@fairlead/core";
import { endpointName } from "./slots.ts";

/**
 * The numbers under which clients of a service port with affinity are remembered. An endpoint that goes and comes back
 * has another one, and so has a service: what is remembered of what was before leads nowhere.
 */
export interface Memory {
  /** Of the service port. */
  readonly number: number;
  /** Of its endpoints, by `endpointName`. */
  readonly endpoints: ReadonlyMap<string, number>;
}

/** Sets have 32 bits for them. A table that is made anew begins with 1 again, long before they are used up. */
const LAST = 2 ** 31;

/** Numbers for everything of one table that clients are remembered with: none is given out twice. */
export class Numbers {
  #last = 0;

  next(): number {
    this.#last += 1;
    return this.#last;
  }

  get usedUp(): boolean {
    return this.#last > LAST;
  }
}

/** Who stays keeps the number; without a change the memory is the same object. */
export function memoryOf(endpoints: Iterable<PlanEndpoint>, before: Memory | undefined, numbers: Numbers): Memory {
  const made = new Map<string, number>();
  let isSame = before !== undefined;
  for (const endpoint of endpoints) {
    const name = endpointName(endpoint);
    if (made.has(name)) continue;
    const known = before?.endpoints.get(name);
    isSame &&= known !== undefined;
    made.set(name, known ?? numbers.next());
  }
  if (before !== undefined && isSame && made.size === before.endpoints.size) return before;
  return { number: before?.number ?? numbers.next(), endpoints: made };
}

/**
 * What a service port is known by where its id is not: a renamed port is the same one, and so is what another agent has
 * left in the kernel.
 */
export function identityOf({ service, protocol, frontends: [first] }: ServicePortGroup): string {
  return `${service} ${protocol} ${first?.kind} ${first?.address ?? ""} ${first?.port}`;
}
