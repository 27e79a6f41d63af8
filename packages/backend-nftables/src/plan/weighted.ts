/**
 * Sets of endpoints that do not weigh alike: each has a map of its own, which divides all numbers of 32 bits into
 * intervals as long as the endpoints weigh. A change is one of elements only.
 */

import type { EndpointSetName, ServicePortGroup, SetWeights } from "@fairlead/core";
import { type Hex, hexOf, hostHex, type SetElement, statements } from "@fairlead/netfilter/nft";
import { weightedName } from "./context.ts";
import { addressType, endpointValue, rememberedValue } from "./keys.ts";
import { endpointName, type Placement } from "./placement.ts";
import { type ElementChanges, type Need, translateBy } from "./pools.ts";

/** The map that packets draw from, and the chain that does it: both have this name. */
export function weightedNeed(group: ServicePortGroup, set: EndpointSetName): Need {
  const name = weightedName(group.name, group.protocol, set);
  return {
    id: name,
    make: ({ family }) => {
      const random = { kind: "meta", key: "random", to: 0 } as const;
      // nft takes no rule that translates a port of packets of any protocol.
      const expressions = [...protocolIs(group.protocol.toLowerCase()), random, ...translateBy(name, family)];
      return {
        sets: [{ name, key: ["random"], data: [addressType(family), "inet_service"], flags: ["interval"] }],
        chains: [{ name, rules: [{ expressions }] }],
      };
    },
  };
}

const { protocolIs } = statements;

/** The map of clients that are remembered by numbers (`Memory`): `0 . service port . endpoint`. */
export function rememberedNeed({ id: chain }: Need): Need {
  const id = `${chain}/sticky`;
  const set = { name: id, key: ["random"], data: ["mark", "mark", "mark"], flags: ["interval"] } as const;
  return { id, make: () => ({ sets: [set], chains: [] }) };
}

/** Intervals are no single elements: where one differs, the whole map is written. */
export function weightedChanges(before: Placement | undefined, after: Placement | undefined, to: ElementChanges): void {
  const [was, is] = [weightedMaps(before), weightedMaps(after)];
  for (const name of new Set([...was.keys(), ...is.keys()])) {
    const [old, now] = [was.get(name) ?? [], is.get(name) ?? []];
    if (JSON.stringify(old) === JSON.stringify(now)) continue;
    if (old.length > 0) to.clear(name);
    for (const element of now) to.add(name, element);
  }
}

function weightedMaps(placement: Placement | undefined): ReadonlyMap<string, readonly SetElement[]> {
  const maps = new Map<string, readonly SetElement[]>();
  if (placement === undefined) return maps;
  const { group, memory } = placement;
  for (const set of ["cluster", "local"] as const) {
    const { weights, slots = [] } = placement[set] ?? {};
    if (weights === undefined) continue;
    const need = weightedNeed(group, set);
    maps.set(need.id, intervals(weights, slots.map(endpointValue)));
    if (memory === undefined) continue;
    const number = hostHex(memory.number);
    const values = slots.map((one) => rememberedValue(number, memory.endpoints.get(endpointName(one)) ?? 0));
    maps.set(rememberedNeed(need).id, intervals(weights, values));
  }
  return maps;
}

/** One behind the other; what is refused is left at the end. */
function intervals({ endpoints, refused = 0 }: SetWeights, values: readonly Hex[]): readonly SetElement[] {
  const total = endpoints.reduce((sum, weight) => sum + weight, refused);
  let passed = 0;
  return endpoints.flatMap((weight, at): SetElement[] => {
    const first = numberHex(passed / total);
    passed += weight;
    const begin = { key: first, value: values[at] ?? "" };
    return passed === total ? [begin] : [begin, { key: numberHex(passed / total), intervalEnd: true }];
  });
}

function numberHex(part: number): Hex {
  const number = Math.floor(part * 2 ** 32);
  return hexOf([number >>> 24, (number >>> 16) & 0xff, (number >>> 8) & 0xff, number & 0xff]);
}
