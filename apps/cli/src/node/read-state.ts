/**
 * Reads the state of a node: on the node itself by netlink, and where its image has no `fairlead` by the programs that
 * it has.
 */

import { DEVICE } from "@fairlead/backend-ipvs";
import { errorText, IP_FAMILIES, itemsOf, numberOf, stringOf, textAt, valueAt } from "@fairlead/base";
import {
  isStatePart,
  type NodeState,
  nodeStateText,
  parseNodeState,
  type RuleListing,
  routeCIDR,
  STATE_PARTS,
  type StatePart,
  type StateParts,
  type StateRoute,
} from "@fairlead/inspect";
import {
  CommandError,
  createIpset,
  createIpvsadm,
  createLinks,
  createNodeAddresses,
  createTrackingTools,
  type IPFamily,
  nftTableNames,
  openGenericSocket,
  openNetfilterSocket,
  openRouteSocket,
  openTracking,
  parseIpJson,
  type Runner,
  readNftTables,
} from "@fairlead/kernel";
import { NFT_FAMILY, type NftTable, readTables } from "@fairlead/netfilter/nft";
import { parseRecentList, ticksPerSecond } from "@fairlead/trace";
import { collect, countConnections } from "./connections.ts";
import { STATE } from "./host.ts";

/** Whether a table of nftables is one of iptables' nft variant: they are read as iptables notes them. */
export function isOfIptables(name: string): boolean {
  return OF_IPTABLES.has(name);
}

const OF_IPTABLES: ReadonlySet<string> = new Set(["filter", "nat", "mangle", "raw", "security"]);

/** Milliseconds and bytes that a listing of a very large kernel may take. */
const LIMITS = { timeoutMs: 120_000, maxStdout: 1 << 30 };

/** The state of the node whose programs the runner starts, in one start where they have this `fairlead`. */
export async function stateIn(runner: Runner, parts: readonly StatePart[] = STATE_PARTS): Promise<NodeState> {
  let printed: string;
  try {
    printed = (await runner.run(["fairlead", STATE, ...parts], LIMITS)).stdout;
  } catch (error) {
    if (!(error instanceof CommandError)) throw error;
    return readState(runner, "programs", parts);
  }
  return parseNodeState(printed);
}

/** What `fairlead __state PART…` prints. */
export async function stateText(names: readonly string[], runner: Runner): Promise<string> {
  const parts = names.filter(isStatePart);
  const unknown = names.filter((name) => !isStatePart(name));
  if (unknown.length > 0) throw new RangeError(`a node's state has no ${unknown.join(" and no ")}`);
  return nodeStateText(await readState(runner, "netlink", parts.length === 0 ? STATE_PARTS : parts));
}

/** @param by netlink reads this process's network namespace; rules of iptables and routes are always listed */
export async function readState(
  runner: Runner,
  by: "netlink" | "programs",
  parts: readonly StatePart[] = STATE_PARTS,
): Promise<NodeState> {
  const problems: Partial<Record<StatePart, string>> = {};
  const read = await Promise.all(
    parts.map(async (part) => {
      try {
        return [part, await READERS[part](runner, by === "netlink")] as const;
      } catch (error) {
        problems[part] = errorText(error);
        return [part, undefined] as const;
      }
    }),
  );
  const found = Object.fromEntries(read.filter(([, value]) => value !== undefined));
  return { ...(found satisfies Readonly<Record<string, unknown>>), problems };
}

type Readers = { readonly [Part in StatePart]: (runner: Runner, netlink: boolean) => Promise<StateParts[Part]> };

const READERS: Readers = {
  versions: async (runner) => {
    const kernel = (await outputOf(runner, "uname", "-rm"))?.trim();
    const iptables = /^ip6?tables (v\S+(?: \(\w+\))?)$/m.exec(
      (await outputOf(runner, "iptables", "--version")) ?? "",
    )?.[1];
    return { ...(kernel !== undefined && { kernel }), ...(iptables !== undefined && { iptables }) };
  },
  addresses: async (runner, netlink) => [
    ...(await createNodeAddresses(runner, netlink ? { open: openRouteSocket } : {}).list()),
  ],
  devices: async (runner) =>
    devicesIn((await runner.run(["ip", "-json", "-details", "address", "show"], LIMITS)).stdout),
  routes: async (runner) => (await Promise.all(IP_FAMILIES.map((family) => routes(runner, family)))).flat(),
  rules: ruleListings,
  // A machine without netlink may have nft.
  tableNames: async (runner, netlink) => [
    ...(await (netlink ? nftTableNames().catch(() => namesByTool(runner)) : namesByTool(runner))),
  ],
  tables: async (runner, netlink) => [
    ...(await (netlink ? tablesByNetlink().catch(() => tablesByTool(runner)) : tablesByTool(runner))),
  ],
  servers: (runner, netlink) => collect(createIpvsadm(runner, netlink ? { open: openGenericSocket } : {}).save()),
  sets: (runner, netlink) => collect(createIpset(runner, netlink ? { open: openNetfilterSocket } : {}).save()),
  serviceAddresses: async (runner, netlink) => {
    const found = await createLinks(runner, netlink ? { open: openRouteSocket } : {}).addresses(DEVICE);
    return found === undefined ? null : [...found];
  },
  recent: recentLists,
  connections: async (runner, netlink) =>
    countConnections(netlink ? await openTracking(runner) : createTrackingTools(runner)),
  settings: async (runner) => {
    const values = await Promise.all(
      SETTINGS.map(async (key) => [key, numberIn(await outputOf(runner, "cat", `/proc/sys/${key}`))] as const),
    );
    return Object.fromEntries(values.flatMap(([key, value]) => (value === undefined ? [] : [[key, value]])));
  },
};

const SETTINGS = [
  "net/ipv4/vs/conntrack",
  "net/ipv4/vs/expire_quiescent_template",
  "net/netfilter/nf_conntrack_tcp_be_liberal",
  "net/netfilter/nf_conntrack_count",
  "net/netfilter/nf_conntrack_max",
  "net/netfilter/nf_conntrack_acct",
  "net/bridge/bridge-nf-call-iptables",
  "net/bridge/bridge-nf-call-ip6tables",
] as const;

/** As `ip -json -details address` lists them: a master by its name. Busybox's ip knows no JSON. */
function devicesIn(text: string): StateParts["devices"] {
  const all = itemsOf(parseIpJson(text));
  const numbers = new Map(all.map((one) => [textAt(one, "ifname"), numberOf(valueAt(one, "ifindex"))]));
  return all.flatMap((one) => {
    const [name, index] = [textAt(one, "ifname"), numberOf(valueAt(one, "ifindex"))];
    if (name === undefined || index === undefined) return [];
    const kind = stringOf(valueAt(one, "linkinfo", "info_kind"));
    const master = numbers.get(textAt(one, "master"));
    const addresses = itemsOf(valueAt(one, "addr_info")).flatMap((address) => textAt(address, "local") ?? []);
    return [{ name, index, ...(kind !== undefined && { kind }), ...(master !== undefined && { master }), addresses }];
  });
}

async function routes(runner: Runner, family: IPFamily): Promise<readonly StateRoute[]> {
  const flag = family === "IPv4" ? "-4" : "-6";
  const { stdout } = await runner.run(["ip", "-json", flag, "route", "show"], LIMITS);
  return itemsOf(parseIpJson(stdout)).flatMap((one) => {
    const destination = textAt(one, "dst");
    if (destination === undefined) return [];
    const [type, metric] = [textAt(one, "type") ?? "unicast", numberOf(valueAt(one, "metric"))];
    const hops = [one, ...itemsOf(valueAt(one, "nexthops"))];
    return [
      {
        family,
        cidr: routeCIDR(destination, family),
        ...(type !== "unicast" && { type }),
        devices: hops.flatMap((hop) => textAt(hop, "dev") ?? []),
        ...(metric !== undefined && { metric }),
      },
    ];
  });
}

/** Both families in both variants, and which one the host uses. */
async function ruleListings(runner: Runner): Promise<StateParts["rules"]> {
  const nft = await Promise.all(IP_FAMILIES.map((family) => listed(runner, family, "nft")));
  const legacy = await Promise.all(IP_FAMILIES.map((family) => listed(runner, family, "legacy")));
  const variant = usedVariant(nft, legacy);
  return [...nft, ...legacy].map((one) => ({ ...one, inUse: one.variant === variant }));
}

async function listed(runner: Runner, family: IPFamily, variant: RuleListing["variant"]): Promise<RuleListing> {
  const of = { family, variant, inUse: false };
  try {
    const pieces = await collect(
      runner.stream([`${family === "IPv4" ? "iptables" : "ip6tables"}-${variant}-save`], LIMITS),
    );
    return { ...of, save: pieces.join(""), notInstalled: false };
  } catch (error) {
    if (!(error instanceof CommandError)) throw error;
    return { ...of, problem: errorText(error), notInstalled: error.reason === "not-found" };
  }
}

/** Chains that kubelet makes in mangle so that others see which variant the host uses (KEP-3178). */
const HINT = /^:(?:KUBE-IPTABLES-HINT|KUBE-KUBELET-CANARY) /m;

/** As `detectVariant` of @fairlead/kernel decides it: kubelet's chains, else the variant with more rules, else nft. */
function usedVariant(nft: readonly RuleListing[], legacy: readonly RuleListing[]): RuleListing["variant"] {
  const hinted = (all: readonly RuleListing[]) => all.some(({ save = "" }) => HINT.test(save));
  const count = (all: readonly RuleListing[]) =>
    all.reduce((sum, { save = "" }) => sum + (save.match(/^-/gm)?.length ?? 0), 0);
  if (hinted(nft)) return "nft";
  return hinted(legacy) || count(legacy) > count(nft) ? "legacy" : "nft";
}

/**
 * Listing flowtables names every table and reads nothing else; `list tables` and `list ruleset` read all rules of
 * iptables too, a minute for 10,000 services (nftables 1.0).
 */
async function namesByTool(runner: Runner): Promise<StateParts["tableNames"]> {
  const { stdout } = await runner.run(["nft", "list", "flowtables"], LIMITS);
  return [...stdout.matchAll(/^table (\S+) (\S+) \{$/gm)].map(([, family = "", name = ""]) => ({ family, name }));
}

async function tablesByNetlink(): Promise<readonly NftTable[]> {
  const read = IP_FAMILIES.map((family) => readNftTables(family, (name) => !isOfIptables(name)));
  return (await Promise.all(read)).flat();
}

async function tablesByTool(runner: Runner): Promise<readonly NftTable[]> {
  const known: readonly string[] = Object.values(NFT_FAMILY);
  const names = (await namesByTool(runner)).filter(({ family, name }) => known.includes(family) && !isOfIptables(name));
  const tables: NftTable[] = [];
  for (const { family, name } of names) {
    const { stdout } = await runner.run(["nft", "-a", "list", "table", family, name], LIMITS);
    tables.push(...readTables(stdout));
  }
  return tables;
}

const RECENT = "/proc/net/xt_recent";

/** The clients that affinity knows. */
async function recentLists(runner: Runner): Promise<StateParts["recent"]> {
  const names = ((await outputOf(runner, "ls", RECENT)) ?? "").split("\n").filter((name) => name !== "");
  if (names.length === 0) return {};
  const jiffies = Number(
    /^jiffies: (\d+)/m.exec((await outputOf(runner, "cat", "/proc/timer_list")) ?? "")?.[1] ?? "NaN",
  );
  const uptime = Number((await outputOf(runner, "cat", "/proc/uptime"))?.split(" ")[0]);
  if (Number.isNaN(jiffies)) return {};
  const time = { jiffies, perSecond: ticksPerSecond(jiffies, uptime) };
  const lists = names.map(async (name) => {
    const seen = parseRecentList((await outputOf(runner, "cat", `${RECENT}/${name}`)) ?? "", time);
    return [name, Object.fromEntries(Array.from(seen, ([address, ages]) => [address, [...ages]]))] as const;
  });
  return Object.fromEntries(await Promise.all(lists));
}

/** Undefined: the program is not there, or failed. */
async function outputOf(runner: Runner, ...argv: readonly [string, ...string[]]): Promise<string | undefined> {
  try {
    return (await runner.run(argv, LIMITS)).stdout;
  } catch (error) {
    if (error instanceof CommandError) return undefined;
    throw error;
  }
}

function numberIn(text: string | undefined): number | undefined {
  return text !== undefined && /^\s*-?\d+\s*$/.test(text) ? Number(text) : undefined;
}
