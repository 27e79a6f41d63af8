import { IP_FAMILIES } from "@fairlead/base";
import type { IPFamily } from "@fairlead/core";
import type { Nfacct } from "@fairlead/kernel";
import type { Rule, RuleSet } from "@fairlead/netfilter";
import { addressOf, goldenScenarios, NODE_A, recordedScenarios, SECOND_NODE_ADDRESS } from "@fairlead/testkit";
import { type SentPacket, senders } from "./arbitrary-packets.ts";

/** What the real kube-proxy wrote for one family of a scenario, as iptables-save printed it. */
export interface Recording {
  readonly name: string;
  readonly family: IPFamily;
  readonly text: string;
}

/** A plain user's netlink buffer does not take a whole table of more. */
const LARGEST_TEXT = 60_000;

export function recordings(): readonly Recording[] {
  const golden = goldenScenarios().map(({ name, iptables, ip6tables }) => ({
    name,
    saves: { IPv4: iptables, IPv6: ip6tables },
  }));
  const all = [...golden, ...recordedScenarios()].flatMap(({ name, saves }) =>
    IP_FAMILIES.map((family) => ({ name, family, text: saves[family] ?? "" })),
  );
  return all.filter(({ text }) => text !== "" && text.length <= LARGEST_TEXT);
}

/** All ports that the recordings name: of frontends, and of endpoints. */
export function portsOf(all: readonly Recording[]): readonly number[] {
  const named = all.flatMap(({ text }) => [...text.matchAll(/(?:--dport |--to-destination \S*:)(\d+)/g)]);
  return [...new Set(named.map(([, port]) => Number(port)))];
}

/** Packets of everybody to everything that the rules know: addresses with their ports, and node ports. */
export function packetsFor(ruleSet: RuleSet, family: IPFamily): readonly SentPacket[] {
  const rules = ["nat", "filter"].flatMap((table) =>
    [...(ruleSet.get(table === "nat" ? "nat" : "filter")?.chains.values() ?? [])].flatMap((chain) => [...chain.rules]),
  );
  const frontends = new Map(
    rules.flatMap((rule) => frontendsOf(rule, family)).map((one) => [JSON.stringify(one), one]),
  );
  return [...frontends.values()].flatMap((frontend) =>
    [...senders.here, ...senders.elsewhere].flatMap((from) => sent(from, family, frontend)),
  );
}

type Frontend = Pick<SentPacket, "protocol" | "destination" | "port">;

function frontendsOf(rule: Rule, family: IPFamily): readonly Frontend[] {
  return rule.matches.flatMap((match): Frontend[] => {
    if ((match.kind !== "tcp" && match.kind !== "udp") || match.dport === undefined) return [];
    const protocol = match.kind === "tcp" ? "TCP" : "UDP";
    const { from: port } = match.dport;
    const address = rule.destination?.cidr.split("/")[0];
    const own = [NODE_A.addresses[family], SECOND_NODE_ADDRESS[family], ...(family === "IPv4" ? ["127.0.0.1"] : [])];
    const destinations = address === undefined || rule.destination?.cidr === "127.0.0.0/8" ? own : [address];
    return destinations.map((destination) => ({ protocol, destination, port }));
  });
}

function sent(from: SentPacket["from"], family: IPFamily, frontend: Frontend): readonly SentPacket[] {
  const { destination, protocol } = frontend;
  const loopback = destination === "127.0.0.1";
  // Who is not the node reaches its own loopback, and refused and dropped datagrams are one error to their own host.
  if (from === NODE_A ? protocol === "UDP" : loopback) return [];
  const own = from === NODE_A && (loopback || destination === SECOND_NODE_ADDRESS[family]);
  return [{ ...frontend, from, family, source: own ? destination : addressOf(from, family) }];
}

/** The text less counters that this kernel has not got, as kube-proxy itself leaves them out. */
export async function withKnownCounters(text: string, nfacct: Nfacct): Promise<string> {
  const names = new Set([...text.matchAll(/--nfacct-name +(\S+)/g)].map(([, name = ""]) => name));
  const made = await Promise.all([...names].map(async (name) => ((await nfacct.ensure(name)).ok ? [] : [name])));
  const missing = new Set(made.flat());
  return text.replaceAll(/ -m nfacct --nfacct-name +(\S+)/g, (words, name) => (missing.has(name) ? "" : words));
}
