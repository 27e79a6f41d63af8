import type { Balancer } from "../../src/relay/balancer.ts";

/** Takes all steps of an update. */
export function serveSets(balancer: Balancer, sets: Parameters<Balancer["update"]>[0]): void {
  for (const _ of balancer.update(sets));
}
