import type { Lab } from "@fairlead/lab/plain/lab";
import { applySettings } from "@fairlead/lab/wire";
import { parseSave, type RuleSet, ServerReader, type VirtualServerState } from "@fairlead/netfilter";
import { addressOf, NODE_A, nodeEnvironment } from "@fairlead/testkit";
import { type Outcome, type Packet, trace } from "@fairlead/trace";
import { type MeaningCase, meaningCases, VIP } from "./meaning-cases.ts";
import { type Spec, suiteOf } from "./suite.ts";

const DEVICE = "vip0";
const CHAINS = {
  raw: ["PREROUTING", "OUTPUT"],
  mangle: ["PREROUTING", "INPUT", "FORWARD", "OUTPUT", "POSTROUTING"],
  nat: ["PREROUTING", "INPUT", "OUTPUT", "POSTROUTING"],
  filter: ["INPUT", "FORWARD", "OUTPUT"],
} as const;
const WATCHED_PORTS = [80, 8080, 6443];
const EMPTY = Object.keys(CHAINS)
  .map((table) => `*${table}\nCOMMIT\n`)
  .join("");

/**
 * One packet through the kernel and through the tracer: both must pass the same chains, with the same ports, and come
 * to the same end. Every chain has a rule without a target for each port, whose counter tells that the packet was
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
    .send({ protocol: "TCP", to: VIP, port, count: 1, parallel: 1, timeoutMs: 2_000 });
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
    ...kernel.filter((entry) => !tracer.includes(entry)).map((entry) => `${what} ${entry} in the kernel alone`),
    ...tracer.filter((entry) => !kernel.includes(entry)).map((entry) => `${what} ${entry} in the tracer alone`),
  ];
}
