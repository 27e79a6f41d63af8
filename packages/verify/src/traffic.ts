import { bracketed } from "@fairlead/base";
import type { RuleSet } from "@fairlead/netfilter";
import type { NftTable } from "@fairlead/netfilter/nft";
import {
  createTracer,
  type Environment,
  type Exploration,
  landings,
  type Packet,
  type Tracer,
  withoutOthersMasquerade,
} from "@fairlead/trace";
import type { Finding } from "./finding.ts";

/** A packet to a service. */
export interface Probe {
  /** `namespace/name:port` */
  readonly service: string;
  readonly packet: Packet;
}

/** What a packet meets on a node. */
export interface Kernel {
  readonly rules: RuleSet;
  /** Beside those of iptables; absent: none. */
  readonly nftables?: readonly NftTable[];
  readonly environment: Environment;
}

/**
 * Sends packets through what is expected and through what is there, and gives those that end elsewhere, or with another
 * probability. What cannot be decided there is no finding where all ways of it end the same. Where others' rules
 * masquerade, as pod networks do with what leaves them, and nothing else differs, the finding says so. A step is a
 * packet.
 */
export function* compareTraffic(
  expected: Kernel,
  actual: Kernel,
  probes: Iterable<Probe>,
): Generator<void, readonly Finding[], void> {
  const [wanted, found] = [endsIn(expected), endsIn(actual)];
  const findings: Finding[] = [];
  for (const { service, packet } of probes) {
    yield;
    const [want, have] = [wanted(packet), found(packet)];
    if (isSame(want.ends, have.ends)) continue;
    const what = `${endText(have.ends)}, expected ${endText(want.ends)}`;
    const others = isSame(want.ofProxy, have.ofProxy) && { others: true as const };
    findings.push({ kind: "different", service, where: `traffic ${packetText(packet)}`, what, ...others });
  }
  return findings;
}

/** Where packets end, and the share of each end; or why that cannot be told. */
type Ends = ReadonlyMap<string, number> | string;

/** Shares are told with so many digits, and nftables mode draws evenly but for half a percent. */
const TOLERANCE = 1e-5;
const UNEVEN = 0.005;

function isSame(wanted: Ends, found: Ends): boolean {
  if (typeof wanted === "string" || typeof found === "string") return wanted === found;
  if (wanted.size !== found.size) return false;
  return [...wanted].every(([end, share]) => Math.abs((found.get(end) ?? -1) - share) < TOLERANCE + UNEVEN * share);
}

function endsIn({ rules, nftables = [], environment }: Kernel) {
  const tracer = createTracer({ iptables: rules, nftables });
  return (packet: Packet) => {
    const exploration = explored(tracer, packet, environment);
    return {
      ends: endsOf(exploration),
      /** As if nobody but a proxy masqueraded. */
      get ofProxy(): Ends {
        return endsOf({ ...exploration, outcomes: withoutOthersMasquerade(exploration.outcomes) });
      },
    };
  };
}

function explored(tracer: Tracer, packet: Packet, environment: Environment): Exploration {
  const own = packet.inInterface === undefined && isLocal(packet.destination, environment);
  return tracer.explore(own ? { ...packet, source: packet.destination } : packet, environment, { merged: true });
}

function isLocal(address: string, { localAddresses = [] }: Environment): boolean {
  for (const own of localAddresses) if (own === address) return true;
  return false;
}

function endsOf({ outcomes, undecided }: Exploration): Ends {
  const [first] = undecided;
  if (first !== undefined) return `cannot tell: ${first.problem.message}`;
  const total = outcomes.reduce((sum, { probability }) => sum + probability, 0);
  const ends = new Map<string, number>();
  for (const { verdict, destination, masqueraded, probability } of landings(outcomes)) {
    const end = verdict === "accept" ? `${destination}${masqueraded ? " masqueraded" : ""}` : verdict;
    ends.set(end, (ends.get(end) ?? 0) + probability / total);
  }
  return ends;
}

/** `10.144.1.5:8080 masqueraded 50 %, …` */
function endText(ends: Ends): string {
  if (typeof ends === "string") return ends;
  const texts = Array.from(ends, ([end, share]) => `${end} ${Number((share * 100).toFixed(3))} %`);
  return texts.sort().join(", ");
}

function packetText({ protocol, source, destination, dport }: Packet): string {
  const to = bracketed(destination);
  return `${protocol} ${source} → ${to}${dport === undefined ? "" : `:${dport}`}`;
}
