import { IP_FAMILIES, type IPFamily } from "@fairlead/base";
import type { KernelVersion } from "@fairlead/lab/qemu/kernel";
import { CLIENT, clusterIP, LINKS, OUTSIDE, runOnNode, SERVICES, type ServiceName, SPY, TARGETS } from "./fast-path.ts";
import { type Lived, livedIn, numberIn, type Protocol, printedAfter } from "./guest.ts";

/** What flows of one kind live through while the agent serves with the fast path. */
interface Seen extends Lived {
  readonly offloaded: number;
  readonly met: number;
  /** Packets that connection tracking has counted in the first flow's direction of requests. */
  readonly counted: number;
}

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
  const text = await runOnNode(version, [
    "on_node sysctl -q -w net.netfilter.nf_conntrack_acct=1",
    ...othersLines(),
    "start_agent auto",
    ...IP_FAMILIES.map((family) => `echo "devices-${family} $(devices ${TABLE_FAMILY[family]})"`),
    ...IP_FAMILIES.flatMap((family) => names.flatMap((name, at) => caseLines(family, CASES[name], at))),
  ]);
  const of = (family: IPFamily) => Object.fromEntries(names.map((name, at) => [name, seenIn(text, `${family}-${at}`)]));
  const cases = { IPv4: of("IPv4"), IPv6: of("IPv6") };
  return { cases, devices: { IPv4: devicesIn(text, "IPv4"), IPv6: devicesIn(text, "IPv6") } };
}

/** `devices-IPv4 to-client to-server` */
function devicesIn(text: string, family: IPFamily): readonly string[] {
  return printedAfter(text, `devices-${family}`).split(" ").filter(Boolean).toSorted();
}

function caseLines(family: IPFamily, of: Case, at: number): readonly string[] {
  const { from, protocol, to, port, flows, bytes, meanwhile = [] } = of;
  const connections = `${CONNTRACK_FAMILY[family]} ${protocol} ${port}`;
  return [
    "on_node nft delete table inet spy",
    `on_node nft '${SPY}'`,
    `on_node conntrack -D -f ${CONNTRACK_FAMILY[family]} > /dev/null 2>&1 || true`,
    `start_asking ${family}-${at} ${from} ${protocol} ${port} ${to(family)} ${flows} ${EVERY_MS} ${bytes}`,
    "sleep 1",
    ...meanwhile,
    "sleep 1",
    `flowing=$(offloaded ${connections})`,
    "stop_asking",
    `echo "${family}-${at}-rules offloaded=$flowing met=$(met) counted=$(counted ${connections})"`,
  ];
}

/** `IPv4-0 flows=200 answers=8000 …` and `IPv4-0-rules offloaded=200 …` */
function seenIn(text: string, key: string): Seen {
  const rules = printedAfter(text, `${key}-rules`);
  const of = (name: string) => numberIn(rules, name);
  const counts = { offloaded: of("offloaded"), met: of("met"), counted: of("counted") };
  return { ...livedIn(printedAfter(text, key)), ...counts };
}

interface Case {
  readonly from: string;
  readonly protocol: Protocol;
  readonly to: (family: IPFamily) => string;
  readonly port: number;
  readonly flows: number;
  readonly bytes: number;
  /** Lines for sh, once the flows are open. */
  readonly meanwhile?: readonly string[];
}

/** The node's port that another program translates, as Docker does with `--publish`. */
const PUBLISHED = 8_888;

/** As lines for sh: what other programs have on the node. */
function othersLines(): readonly string[] {
  const translated = (["IPv4", "IPv6"] as const).map((family) => {
    const [server = ""] = LINKS.server.others[family];
    const { table, address } = {
      IPv4: { table: "ip", address: server },
      IPv6: { table: "ip6", address: `[${server}]` },
    }[family];
    const rule = `${table} daddr ${LINKS.outside.node[family]} tcp dport ${PUBLISHED} dnat to ${address}:${TARGETS.tcp}`;
    return `table ${table} docker { chain published { type nat hook prerouting priority dstnat; ${rule}; }; }`;
  });
  return translated.map((table) => `on_node nft '${table}'`);
}

/** Before the count, so that no packet that is dropped counts as one that rules have let pass. */
const DROP = `on_node nft insert rule inet spy forward udp dport ${TARGETS.udp} drop`;
const FORGET = "for each in ipv4 ipv6; do on_node conntrack -D -f $each -p udp > /dev/null 2>&1 || true; done";

export const CASES = {
  "TCP connections at the same time": toService("web", "tcp", 200),
  "UDP flows at the same time": toService("web", "udp", 200),
  "one UDP flow": toService("web", "udp", 1),
  "TCP from outside to a node port": toNodePort("tcp"),
  "UDP from outside to a node port": toNodePort("udp"),
  "TCP of a pod to itself": toService("own", "tcp", 20),
  "UDP of a pod to itself": toService("own", "udp", 20),
  "datagrams in fragments": { ...toService("web", "udp", 20), bytes: 4_000 },
  SCTP: toService("web", "sctp", 20),
  "TCP to a Service with the annotation": toService("excepted", "tcp", 20),
  "UDP to a Service with the annotation": toService("excepted", "udp", 20),
  "TCP that another program translates": { ...toNodePort("tcp"), port: PUBLISHED },
  "UDP, a DROP comes later": { ...toService("web", "udp", 20), meanwhile: [DROP] },
  "UDP, a DROP comes later and conntrack forgets the flows": {
    ...toService("web", "udp", 20),
    meanwhile: [DROP, FORGET],
  },
  "UDP to a Service with the annotation, a DROP comes later": {
    ...toService("excepted", "udp", 20),
    meanwhile: [DROP],
  },
} as const satisfies Record<string, Case>;
export type CaseName = keyof typeof CASES;

function toService(name: ServiceName, protocol: Protocol, flows: number): Case {
  const port = SERVICES[name].ports[protocol];
  return { from: CLIENT, protocol, to: (family) => clusterIP(name, family), port, flows, bytes: 64 };
}

function toNodePort(protocol: Protocol): Case {
  const to = (family: IPFamily) => LINKS.outside.node[family];
  return { from: OUTSIDE, protocol, to, port: SERVICES.web.nodePort, flows: 20, bytes: 64 };
}
