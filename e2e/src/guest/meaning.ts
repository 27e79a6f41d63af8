import { PATIENCE_MS } from "@fairlead/base/testing";
import type { Lab } from "@fairlead/lab/plain/lab";
import { applySettings } from "@fairlead/lab/wire";
import { parseSave, type RuleSet, ServerReader, type VirtualServerState } from "@fairlead/netfilter";
import {
  addressOf,
  apiServer,
  clientA,
  type Host,
  NODE_A,
  nodeEnvironment,
  outside,
  webA1,
  webB1,
} from "@fairlead/testkit";
import { type Outcome, type Packet, trace } from "@fairlead/trace";
import { type Spec, suiteOf } from "./suite.ts";

const DEVICE = "vip0";
const CHAINS = {
  raw: ["PREROUTING", "OUTPUT"],
  mangle: ["PREROUTING", "INPUT", "FORWARD", "OUTPUT", "POSTROUTING"],
  nat: ["PREROUTING", "INPUT", "OUTPUT", "POSTROUTING"],
  filter: ["INPUT", "FORWARD", "OUTPUT"],
} as const;

const EMPTY = Object.keys(CHAINS)
  .map((table) => `*${table}\nCOMMIT\n`)
  .join("");

const VIP = "10.96.7.7";

const server = (...destinations: readonly string[]) => [
  `-A -t ${VIP}:80 -s rr`,
  ...destinations.map((destination) => `-a -t ${VIP}:80 -r ${destination}`),
];
const here = `${webA1.addresses.IPv4}:8080 -m -w 1`;
const there = `${webB1.addresses.IPv4}:8080 -m -w 1`;
const MASQUERADE = "nat POSTROUTING -j MASQUERADE";
const FROM_SERVER = `nat POSTROUTING -m ipvs --vproto 6 --vaddr ${VIP} --vport 80 -j MASQUERADE`;

interface MeaningCase {
  readonly name: string;
  readonly from: Host;
  readonly port?: number;
  /** Lines for `ipvsadm --restore`. */
  readonly servers: readonly string[];
  /** net.ipv4.vs.conntrack; default on. */
  readonly tracked?: boolean;
  /** More rules, as `TABLE CHAIN RULE`. */
  readonly rules?: readonly string[];
}

/** Packets to a virtual server on node-a, and what stands in their way: the tracer must say what the kernel does. */
const meaningCases: readonly MeaningCase[] = [
  { name: "from outside to a pod here", from: outside, servers: server(here), rules: [MASQUERADE] },
  { name: "from outside to a pod elsewhere", from: outside, servers: server(there), rules: [MASQUERADE] },
  { name: "from a pod", from: clientA, servers: server(here) },
  { name: "from the node itself", from: NODE_A, servers: server(here), rules: [MASQUERADE] },
  { name: "from the node itself to its own port", from: NODE_A, servers: server(`${NODE_A.addresses.IPv4}:8080 -m`) },
  { name: "from outside to the node's own port", from: outside, servers: server(`${NODE_A.addresses.IPv4}:8080 -m`) },
  { name: "without connection tracking", from: clientA, servers: server(here), tracked: false, rules: [MASQUERADE] },
  { name: "no destination: a pod", from: clientA, servers: server() },
  { name: "no destination: a client outside", from: outside, servers: server() },
  { name: "no destination: the node itself", from: NODE_A, servers: server() },
  { name: "none but those of weight 0", from: clientA, servers: server(`${webA1.addresses.IPv4}:8080 -m -w 0`) },
  {
    name: "weight 0 next to another",
    from: clientA,
    servers: server(`${webB1.addresses.IPv4}:8080 -m -w 0`, here),
  },
  { name: "a port that no server has", from: clientA, port: 6443, servers: server(here) },
  {
    name: "refused before it reaches the server",
    from: clientA,
    servers: server(here),
    rules: ["filter INPUT -p tcp -m tcp --dport 80 -j REJECT --reject-with icmp-port-unreachable"],
  },
  { name: "-m ipvs knows what a server sent on", from: clientA, servers: server(here), rules: [FROM_SERVER] },
  {
    name: "translated by a rule before",
    from: clientA,
    servers: server(here),
    rules: [`nat PREROUTING -p tcp -m tcp --dport 80 -j DNAT --to-destination ${apiServer.addresses.IPv4}:8080`],
  },
];

/**
 * One packet through the kernel and through the tracer: both must pass the same chains, with the same ports, and come
 * to the same end. Every chain has a rule without a target for each port, whose counter shows that the packet was
 * there.
 */
export const meaning = suiteOf(
  meaningCases.map((row): Spec => ({ name: `the tracer's meaning: ${row.name}`, run: (lab) => compare(lab, row) })),
  async (lab) => {
    const runner = lab.runner("node-a");
    await runner.run(["ipvsadm", "--clear"]);
    await runner.run(["ip", "link", "delete", DEVICE]);
    await runner.run(["iptables-restore"], { input: EMPTY });
  },
);

const WATCHED_PORTS = [80, 8080, 6443];

async function compare(lab: Lab, row: MeaningCase): Promise<readonly string[]> {
  const runner = lab.runner("node-a");
  const { from, port = 80, servers, tracked = true, rules = [] } = row;
  await runner.run(["ip", "link", "add", DEVICE, "type", "dummy"]);
  await runner.run(["ip", "address", "add", `${VIP}/32`, "dev", DEVICE]);
  const on = tracked ? "1" : "0";
  await applySettings(runner, { "net/ipv4/vs/conntrack": on });
  await runner.run(["ipvsadm", "--restore"], { input: `${servers.join("\n")}\n` });
  const text = ruleText(rules);
  await runner.run(["iptables-restore"], { input: text });
  const [result] = await lab
    .peer(from)
    .send({ protocol: "TCP", to: VIP, port, count: 1, parallel: 1, timeoutMs: PATIENCE_MS });
  const { stdout } = await runner.run(["iptables-save", "--counters"]);
  const outcome = traced(parseSave(text), row, serversOf(servers));
  const seen = result?.kind === "answer" ? result.local : result?.kind;
  return [
    ...differing("passed", passedIn(stdout), passedBy(outcome)),
    ...differing("ended", [seen ?? "nowhere"], [endOf(outcome)]),
  ];
}

function ruleText(rules: readonly string[]): string {
  const tables = Object.entries(CHAINS).map(([table, chains]) => {
    const watched = chains.flatMap((chain) => WATCHED_PORTS.map((port) => `-A ${chain} -p tcp -m tcp --dport ${port}`));
    const own = rules
      .filter((rule) => rule.startsWith(`${table} `))
      .map((rule) => `-A ${rule.slice(table.length + 1)}`);
    // Without any rule that asks for connections the kernel tracks none, and then no nat table is asked.
    const tracking = table === "filter" ? ["-A FORWARD -m conntrack --ctstate NEW"] : [];
    const declared = chains.map((chain) => `:${chain} ACCEPT [0:0]`);
    return [`*${table}`, ...declared, ...watched, ...tracking, ...own, "COMMIT", ""].join("\n");
  });
  return tables.join("");
}

function traced(
  rules: RuleSet,
  { from, port = 80, tracked = true }: MeaningCase,
  servers: VirtualServerState[],
): Outcome {
  const received = { source: addressOf(from, "IPv4"), inInterface: from.interface ?? "" };
  const packet: Packet = {
    family: "IPv4",
    protocol: "tcp",
    destination: VIP,
    dport: port,
    sport: 40_000,
    // The node sends to an address of its own from there.
    ...(from === NODE_A ? { source: VIP } : received),
  };
  const localAddresses = [...(nodeEnvironment.localAddresses ?? []), VIP];
  const environment = { ...nodeEnvironment, localAddresses, ipvs: { servers, conntrack: tracked } };
  const [outcome, ...others] = trace(rules, packet, environment);
  if (outcome === undefined || others.length > 0) throw new Error("the packet has not one way");
  return outcome;
}

function serversOf(lines: readonly string[]): VirtualServerState[] {
  const reader = new ServerReader();
  const complete = lines.flatMap((line) => reader.push(line) ?? []);
  return [...complete, ...[reader.end()].flatMap((last) => last ?? [])];
}

/** Rules of iptables-save that counted a packet, but for those that are there to do something. */
function passedIn(save: string): string[] {
  return save
    .split("*")
    .flatMap((table) =>
      [...table.matchAll(/^\[(\d+):\d+\] -A (\S+) -p tcp -m tcp --dport (\d+)$/gm)].flatMap(
        ([, packets, chain, port]) => (packets === "0" ? [] : [`${table.split("\n")[0]} ${chain} ${port}`]),
      ),
    );
}

function passedBy({ visits }: Outcome): string[] {
  return visits.flatMap((visit) => {
    if ("nft" in visit) return [];
    const { table, chain, rule } = visit;
    const { target, matches } = rule;
    const [match] = matches;
    return target === undefined && match?.kind === "tcp" ? [`${table} ${chain} ${match.dport?.from}`] : [];
  });
}

function endOf({ verdict, destination }: Outcome): string {
  return verdict === "reject" ? "refused" : `${destination.address}:${destination.port}`;
}

function differing(what: string, kernel: readonly string[], tracer: readonly string[]): string[] {
  return [
    ...kernel.filter((entry) => !tracer.includes(entry)).map((entry) => `${what} ${entry} in the kernel only`),
    ...tracer.filter((entry) => !kernel.includes(entry)).map((entry) => `${what} ${entry} in the tracer only`),
  ];
}
