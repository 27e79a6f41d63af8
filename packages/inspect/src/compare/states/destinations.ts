import type { IPFamily } from "@fairlead/core";
import type { Rule } from "@fairlead/netfilter";
import type { KernelState } from "../packets/view.ts";
import { type Destination, destinationText } from "./destination.ts";
import { destinationsInNft } from "./nft-destinations.ts";
import { destinationsInRules } from "./nft-rule-destinations.ts";
import { rulesSaying } from "./rules-saying.ts";

/** Every single address and port, and every port of the node, that rules or virtual servers speak of. */
export function destinationsOf(state: KernelState, family: IPFamily): ReadonlyMap<string, Destination> {
  const inRules = (state.nftables ?? []).flatMap((table) => [...destinationsInRules(table, family)]);
  return new Map([...eachDestination(state, family), ...inRules].map((one) => [destinationText(one), one]));
}

/**
 * The same one after the other, some more than once, of nftables those that maps dispatch: large listings take their
 * time.
 */
export function* eachDestination(
  { ruleSet, nftables = [], environment }: KernelState,
  family: IPFamily,
): Generator<Destination, void, undefined> {
  for (const table of ["nat", "filter"] as const) {
    for (const chain of ruleSet.get(table)?.chains.values() ?? []) {
      for (const rule of rulesSaying(chain, /--dport /)) yield* destinationOf(rule);
    }
  }
  for (const table of nftables) yield* destinationsInNft(table, family);
  for (const { protocol, address, port, family: of } of environment.ipvs?.servers ?? []) {
    if (of === family) yield { protocol: protocol.toLowerCase(), address, port };
  }
}

const HOST_LENGTH = /\/(?:32|128)$/;

function destinationOf({ destination, protocol, matches }: Rule): readonly Destination[] {
  const ports = matches.flatMap((match) => ("dport" in match && match.dport !== undefined ? [match.dport] : []));
  const [port] = ports;
  if (port === undefined || port.negated || port.from !== port.to || protocol?.negated) return [];
  const base = { protocol: protocol?.value ?? "tcp", port: port.from };
  if (destination === undefined) return [base];
  if (destination.negated || !HOST_LENGTH.test(destination.cidr)) return [];
  return [{ ...base, address: destination.cidr.replace(HOST_LENGTH, "") }];
}
