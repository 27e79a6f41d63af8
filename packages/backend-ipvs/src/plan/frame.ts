import type { ChainRules, FrameFacts, FrameTable } from "./frame-facts.ts";
import { filterChains } from "./frame-filter.ts";
import { natChains, OFF_CLUSTER } from "./frame-nat.ts";
import type { BarredAddress } from "./group.ts";
import {
  FORWARD,
  IPVS_FILTER,
  IPVS_OUT_FILTER,
  LOAD_BALANCER,
  MARK_MASQ,
  NODE_PORT,
  POSTROUTING,
  PROXY_FIREWALL,
  SERVICES,
  SOURCE_RANGES,
} from "./names.ts";

/** Every chain that this mode makes and cleanup removes. */
export const CHAINS: Readonly<Record<FrameTable, readonly string[]>> = {
  nat: [SERVICES, POSTROUTING, NODE_PORT, LOAD_BALANCER, MARK_MASQ, OFF_CLUSTER],
  filter: [FORWARD, NODE_PORT, PROXY_FIREWALL, SOURCE_RANGES, IPVS_FILTER, IPVS_OUT_FILTER],
};

/** Every chain of this mode with its rules, each after those that it leads to. */
export function frameChains(facts: FrameFacts): Readonly<Record<FrameTable, readonly ChainRules[]>> {
  return { nat: natChains(facts), filter: filterChains(facts) };
}

/** Facts with which everything is let through and masqueraded that one of the two lets through or masquerades. */
export function unitedFacts(before: FrameFacts, after: FrameFacts): FrameFacts {
  const known = new Set(after.barred.map(barredKey));
  return {
    ...after,
    filled: new Set([...before.filled, ...after.filled]),
    barred: [...before.barred.filter((one) => !known.has(barredKey(one))), ...after.barred],
  };
}

export function sameFacts(a: FrameFacts, b: FrameFacts): boolean {
  return (
    a.masqueradeAll === b.masqueradeAll &&
    a.filled.size === b.filled.size &&
    [...a.filled].every((set) => b.filled.has(set)) &&
    JSON.stringify(a.detector) === JSON.stringify(b.detector) &&
    sameBarred(a.barred, b.barred)
  );
}

function sameBarred(a: readonly BarredAddress[], b: readonly BarredAddress[]): boolean {
  const known = new Set(b.map(barredKey));
  return a.length === b.length && a.every((one) => known.has(barredKey(one)));
}

export function barredKey({ protocol, address, port }: BarredAddress): string {
  return `${protocol} ${address} ${port}`;
}
