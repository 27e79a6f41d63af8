import { IP_FAMILIES, type IPFamily } from "@fairlead/base";
import type { KernelVersion } from "@fairlead/lab/qemu/kernel-versions";
import { type Lived, livedIn, numberIn, printedAfter } from "../qemu/guest.ts";
import { runOnNode, SPY } from "./objects.ts";
import { CASES, type Case, type CaseName, othersLines } from "./packet-cases.ts";

/** What flows of one kind live through while the agent serves with the fast path. */
interface Seen extends Lived {
  /** Connections in the flowtable while all flows are open. */
  readonly offloaded: number;
  /** Packets that rules have seen. */
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
