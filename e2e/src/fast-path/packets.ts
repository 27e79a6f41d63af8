import { IP_FAMILIES, type IPFamily } from "@fairlead/base";
import type { KernelVersion } from "@fairlead/lab/qemu/kernel-versions";
import { CLIENT, LINKS, OUTSIDE } from "./ground.ts";
import { runInGuest } from "./guest.ts";
import { clusterIP, type Protocol, SERVICES } from "./objects.ts";

/** What flows of one kind live through while the agent serves with the fast path. */
interface Seen {
  readonly flows: number;
  readonly answers: number;
  readonly lost: number;
  readonly stalled: number;
  /** Connections in the flowtable while all flows are open. */
  readonly offloaded: number;
  /** Packets that rules have seen. */
  readonly met: number;
  /** Packets that connection tracking has counted in the first flow's direction of requests. */
  readonly counted: number;
}

interface Case {
  readonly from: string;
  readonly protocol: Protocol;
  readonly to: (family: IPFamily) => string;
  readonly port: number;
  readonly flows: number;
  readonly bytes: number;
}

/** By name. */
export const CASES = {
  "TCP connections at the same time": toService("web", "tcp", 200),
  "UDP flows at the same time": toService("web", "udp", 200),
  "one UDP flow": toService("web", "udp", 1),
  "TCP from outside to a node port": toNodePort("tcp"),
  "UDP from outside to a node port": toNodePort("udp"),
  "datagrams in fragments": { ...toService("web", "udp", 20), bytes: 4_000 },
  SCTP: toService("web", "sctp", 20),
  "TCP to a Service with the annotation": toService("excepted", "tcp", 20),
  "UDP to a Service with the annotation": toService("excepted", "udp", 20),
} as const satisfies Record<string, Case>;
export type CaseName = keyof typeof CASES;

type SeenByCase = Readonly<Record<IPFamily, Partial<Readonly<Record<CaseName, Seen>>>>>;

export interface SeenPackets {
  readonly cases: SeenByCase;
  /** In the flowtable of each family. */
  readonly devices: Readonly<Record<IPFamily, readonly string[]>>;
}

const EVERY_MS = 50;
const CONNTRACK_FAMILY = { IPv4: "ipv4", IPv6: "ipv6" } as const;
const TABLE_FAMILY = { IPv4: "ip", IPv6: "ip6" } as const;

/** Runs all cases, one after the other, in one guest whose agent chooses the devices (auto). */
export async function packetsOn(version: KernelVersion): Promise<SeenPackets> {
  const names = Object.keys(CASES) as CaseName[];
  const text = await runInGuest(version, [
    "on_node sysctl -q -w net.netfilter.nf_conntrack_acct=1",
    "start_agent auto",
    ...IP_FAMILIES.map((family) => `echo "devices ${family} $(devices ${TABLE_FAMILY[family]})"`),
    ...IP_FAMILIES.flatMap((family) => names.flatMap((name, at) => caseLines(family, CASES[name], at))),
  ]);
  const of = (family: IPFamily) =>
    Object.fromEntries(names.flatMap((name, at) => seenIn(text, `${family} ${at}`).map((seen) => [name, seen])));
  const cases = { IPv4: of("IPv4"), IPv6: of("IPv6") };
  return { cases, devices: { IPv4: devicesIn(text, "IPv4"), IPv6: devicesIn(text, "IPv6") } };
}

/** `devices IPv4 to-client to-server` */
function devicesIn(text: string, family: IPFamily): readonly string[] {
  const line = text.split("\n").find((one) => one.startsWith(`devices ${family} `));
  return line?.split(" ").slice(2).filter(Boolean).toSorted() ?? [];
}

function toService(name: keyof typeof SERVICES, protocol: Protocol, flows: number): Case {
  const port = SERVICES[name].ports[protocol];
  return { from: CLIENT, protocol, to: (family) => clusterIP(name, family), port, flows, bytes: 64 };
}

function toNodePort(protocol: Protocol): Case {
  const to = (family: IPFamily) => LINKS.outside.node[family];
  return { from: OUTSIDE, protocol, to, port: SERVICES.web.nodePort, flows: 20, bytes: 64 };
}

function caseLines(family: IPFamily, { from, protocol, to, port, flows, bytes }: Case, at: number): readonly string[] {
  const connections = `${CONNTRACK_FAMILY[family]} ${protocol} ${port}`;
  return [
    `on_node conntrack -D -f ${CONNTRACK_FAMILY[family]} > /dev/null 2>&1 || true`,
    "before=$(met)",
    `start_asking case ${from} ${protocol} ${port} ${to(family)} ${flows} ${EVERY_MS} ${bytes}`,
    "sleep 2",
    `flowing=$(offloaded ${connections})`,
    "stop_asking",
    `echo "${family} ${at} $(cat /tmp/asked-case) offloaded=$flowing met=$(($(met) - before)) counted=$(counted ${connections})"`,
  ];
}

/** `IPv4 0 flows=200 answers=8000 …` */
function seenIn(text: string, key: string): readonly Seen[] {
  const line = text.split("\n").find((one) => one.startsWith(`${key} `));
  if (line === undefined) return [];
  const value = (name: string) => Number(new RegExp(`${name}=(\\d+)`).exec(line)?.[1] ?? Number.NaN);
  return [
    {
      flows: value("flows"),
      answers: value("answers"),
      lost: value("lost"),
      stalled: value("stalled"),
      offloaded: value("offloaded"),
      met: value("met"),
      counted: value("counted"),
    },
  ];
}
