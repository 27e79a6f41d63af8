import { socketText } from "@fairlead/base";
import type { IPFamily } from "@fairlead/core";
import type { Rule, RuleSet } from "@fairlead/netfilter";
import type { Environment } from "@fairlead/trace";
import { rulesSaying } from "./rules-saying.ts";

/** Something that packets can be sent to. */
export interface Destination {
  /** tcp, udp or sctp */
  readonly protocol: string;
  /** Canonical address; absent: a port of the node. */
  readonly address?: string;
  readonly port: number;
}

/** Every single address and port, and every port of the node, that rules or virtual servers speak of. */
export function destinationsOf(
  { ruleSet, environment }: { readonly ruleSet: RuleSet; readonly environment: Environment },
  family: IPFamily,
): ReadonlyMap<string, Destination> {
  const found = new Map<string, Destination>();
  const add = (destination: Destination) => found.set(destinationText(destination), destination);
  for (const table of ["nat", "filter"] as const) {
    for (const chain of ruleSet.get(table)?.chains.values() ?? []) {
      for (const rule of rulesSaying(chain, /--dport /)) for (const one of destinationOf(rule)) add(one);
    }
  }
  for (const { protocol, address, port, family: of } of environment.ipvs?.servers ?? []) {
    if (of === family) add({ protocol: protocol.toLowerCase(), address, port });
  }
  return found;
}

/** `tcp 10.96.0.10:80`, `tcp [fd00::10]:80`, `tcp node port 30080` */
export function destinationText({ protocol, address, port }: Destination): string {
  if (address === undefined) return `${protocol} node port ${port}`;
  return `${protocol} ${socketText(address, port)}`;
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
