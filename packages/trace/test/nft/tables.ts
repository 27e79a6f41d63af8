import type {
  BaseChain,
  DataType,
  Expression,
  Hex,
  NftChain,
  NftSet,
  NftTable,
  SetElement,
  Verdict,
} from "@fairlead/netfilter/nft";
import { addressHex, hexOf, hostHex, PROTOCOLS, padded, portHex } from "@fairlead/netfilter/nft";

export type Rules = readonly (readonly Expression[])[];

/** A table of chains by name; `prerouting nat` and `forward filter 10 drop` are base chains. */
export function tableOf(
  chains: Readonly<Record<string, Rules>>,
  sets: readonly NftSet[] = [],
  { family = "ip", name = "t" }: Partial<Pick<NftTable, "family" | "name">> = {},
): NftTable {
  const made = Object.entries(chains).map(([words, rules]): NftChain => {
    const base = baseOf(words);
    return { name: words, ...(base && { base }), rules: rules.map((expressions) => ({ expressions })) };
  });
  return {
    family,
    name,
    chains: new Map(made.map((chain) => [chain.name, chain])),
    sets: new Map(sets.map((set) => [set.name, set])),
  };
}

const PRIORITIES = { prerouting: -100, output: -100, postrouting: 100, input: 100, forward: 0 } as const;

function baseOf(words: string): BaseChain | undefined {
  const found = /^(prerouting|input|forward|output|postrouting) (filter|nat|route)(?: (-?\d+))?( drop)?$/.exec(words);
  if (found === null) return undefined;
  const [, hook, type, priority, drop] = found as unknown as [
    string,
    keyof typeof PRIORITIES,
    BaseChain["type"],
    string?,
    string?,
  ];
  const own = type === "nat" ? PRIORITIES[hook] : 0;
  return {
    type,
    hook,
    priority: priority === undefined ? own : Number(priority),
    policy: drop === undefined ? "accept" : "drop",
  };
}

type Value = Hex | Verdict;

/** A set, or a map where its elements have values. */
export function setOf(
  name: string,
  key: readonly DataType[],
  elements: Iterable<Hex | readonly [Hex, Value]>,
  more: Partial<NftSet> = {},
): NftSet {
  const made = Array.from(elements, (one): readonly [Hex, SetElement] =>
    typeof one === "string" ? [one, { key: one }] : [one[0], { key: one[0], value: one[1] }],
  );
  return { name, key, flags: [], ...more, elements: new Map(made) };
}

/** Bounds of intervals: the first address, and the first behind it. */
export function intervals(name: string, key: DataType, bounds: readonly (readonly [from: Hex, behind: Hex])[]): NftSet {
  const elements = bounds.flatMap(([from, behind]): SetElement[] => [
    { key: from },
    { key: behind, intervalEnd: true },
  ]);
  return { name, key: [key], flags: ["interval"], elements: new Map(elements.map((one) => [one.key, one])) };
}

export const goTo = (chain: string): Verdict => ({ kind: "goto", chain });

/** `ip daddr . meta l4proto . th dport` as a key, with a slot behind it where one is given. */
export function frontendKey(address: string, protocol: string, port: number, slot?: number): Hex {
  const key = padded(addressHex(address)) + padded(hexOf([PROTOCOLS[protocol] ?? 0])) + padded(portHex(port));
  return slot === undefined ? key : key + hostHex(slot);
}

/** An address and a port as a value. */
export const socketValue = (address: string, port: number): Hex => addressHex(address) + padded(portHex(port));

export const FRONTEND_TYPES = ["ipv4_addr", "inet_proto", "inet_service"] as const;
