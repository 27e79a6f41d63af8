import type { IPFamily } from "@fairlead/core";
import type { RuleSet } from "@fairlead/netfilter";
import { addressIn, OUTER_INTERFACE, sourcesOf } from "../packets/sources.ts";
import type { KernelState } from "../packets/view.ts";
import { sourcesInNft } from "./nft-sources.ts";
import { rulesSaying } from "./rules-saying.ts";

/** Somebody who stands for all senders that rules treat alike. */
export interface Sender {
  /** `10.144.0.0/16`, `the node`, `elsewhere` */
  readonly name: string;
  readonly address: string;
  /** Absent: the node itself sends. */
  readonly inInterface?: string;
}

/** Rules of more CIDRs than these are a list of addresses, which is not searched. */
const MOST_CIDRS = 16;

/**
 * One sender for each class that either rule set tells apart by its address: those in a CIDR that a rule names as a
 * source, the node itself, and all others.
 */
export function sendersOf(
  states: readonly Pick<KernelState, "ruleSet" | "nftables">[],
  family: IPFamily,
  nodeAddress: string | undefined,
): readonly Sender[] {
  const named = states.flatMap(({ ruleSet, nftables = [] }) => [
    ...sourceCIDRs(ruleSet),
    ...nftables.flatMap((table) => [...sourcesInNft(table, family)]),
  ]);
  const cidrs = [...new Set(named)].sort().slice(0, MOST_CIDRS);
  const inside = cidrs.map((cidr): Sender => ({ name: cidr, address: addressIn(cidr), inInterface: "pod0" }));
  const others = sourcesOf({ family, detector: { kind: "cidrs", cidrs }, nodeAddress });
  return [
    ...inside,
    ...others.flatMap(({ class: kind, address }): Sender[] => {
      if (kind === "pod") return [];
      return [
        kind === "node" ? { name: "the node", address } : { name: "elsewhere", address, inInterface: OUTER_INTERFACE },
      ];
    }),
  ];
}

/** Single hosts are endpoints that reach themselves, and loopback is the node. */
const NO_CLASS = /^127\.|\/(?:32|128)$/;
/** The same of a rule's text. */
const SOME_CLASS = /(?:^|\s)-s (?!\S+\/(?:32|128)(?:\s|$))/;

function* sourceCIDRs(ruleSet: RuleSet): Generator<string> {
  for (const { chains } of ruleSet.values()) {
    for (const chain of chains.values()) {
      for (const { source } of rulesSaying(chain, SOME_CLASS)) {
        if (source !== undefined && !NO_CLASS.test(source.cidr)) yield source.cidr;
      }
    }
  }
}
