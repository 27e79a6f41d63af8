import type { Runner } from "@fairlead/kernel";
import { type IpvsTarget, ipvsFaults } from "@fairlead/lab/faults";
import { NODE_A, webA1, workload } from "@fairlead/testkit";

/** Something done by hand to what kube-proxy wrote, of which it knows nothing until its next full sync. */
export interface KernelDamage {
  readonly what: string;
  /** The kind that the shadow tells. */
  readonly kind: string;
  inflict(runner: Runner): Promise<void>;
}

/** Remembers what the kernel holds; what it gives brings that back. */
export type Mending = (runner: Runner) => Promise<() => Promise<void>>;

type Change = (rules: readonly string[]) => readonly string[];

/** Rewrites the rules of a table in one transaction that names the chains of the changed lines only. */
function rewritten(table: "nat" | "filter", change: Change): KernelDamage["inflict"] {
  return async (runner) => {
    const { stdout } = await runner.run(["iptables-save", "-t", table]);
    const lines = stdout.split("\n");
    const rules = lines.filter((line) => line.startsWith("-A "));
    const after = change(rules);
    if (after.join("\n") === rules.join("\n")) throw new Error(`nothing of ${table} was damaged`);
    const chains = lines.filter((line) => line.startsWith(":"));
    await runner.run(["iptables-restore"], { input: [`*${table}`, ...chains, ...after, "COMMIT", ""].join("\n") });
  };
}

const nat = (change: Change) => rewritten("nat", change);
const filter = (change: Change) => rewritten("filter", change);
const without =
  (pattern: RegExp): Change =>
  (rules) =>
    rules.filter((rule) => !pattern.test(rule));
const instead = (pattern: RegExp, by: string): Change => {
  let done = false;
  return (rules) =>
    rules.flatMap((rule) => {
      if (done || !pattern.test(rule)) return [rule];
      done = true;
      return rule.replace(pattern, by).split("\n");
    });
};

const iptables = (what: string, kind: string, inflict: KernelDamage["inflict"]): KernelDamage => ({
  what,
  kind,
  inflict,
});

/** To the services of `damagedObjects`. */
export const IPTABLES_DAMAGES: readonly KernelDamage[] = [
  iptables(
    "an endpoint is missing",
    "endpoints",
    nat(without(/^-A KUBE-SVC-\S+ .*"default\/svc-1 -> 10\.144\.1\.5:8080"/)),
  ),
  iptables(
    "an endpoint's weight",
    "shares",
    nat(instead(/(default\/svc-1 -> .*--probability) 0\.5\d*/, "$1 0.25000000000")),
  ),
  iptables(
    "an endpoint's address",
    "endpoints",
    nat(instead(/(svc-1" .*--to-destination) 10\.144\.1\.5:8080/, "$1 10.144.9.9:8080")),
  ),
  iptables(
    "an endpoint's port",
    "endpoints",
    nat(instead(/(svc-1" .*--to-destination) 10\.144\.1\.5:8080/, "$1 10.144.1.5:8081")),
  ),
  iptables("a service is missing", "missing", nat(without(/^-A KUBE-SERVICES .*"default\/svc-1 cluster IP"/))),
  iptables(
    "a load-balancer address is missing",
    "verdict",
    nat(without(/^-A KUBE-SERVICES .*"default\/svc-2 loadbalancer IP"/)),
  ),
  iptables("a node port is missing", "missing", nat(without(/^-A KUBE-NODEPORTS .*"default\/svc-1"/))),
  iptables("node ports are not asked", "missing", nat(without(/^-A KUBE-SERVICES .*-j KUBE-NODEPORTS/))),
  iptables("masquerading is gone", "masquerade", nat(without(/^-A KUBE-POSTROUTING .*MASQUERADE/))),
  iptables("the mark of other traffic is gone", "masquerade", nat(without(/^-A KUBE-EXT-\S+ .*KUBE-MARK-MASQ/))),
  iptables("the mark sets nothing", "masquerade", nat(without(/^-A KUBE-MARK-MASQ /))),
  iptables("a hairpin's mark is gone", "masquerade", nat(without(/^-A KUBE-SEP-\S+ -s 10\.144\.1\.5\/32 /))),
  iptables("the jump of what comes in is gone", "missing", nat(without(/^-A PREROUTING .*KUBE-SERVICES/))),
  iptables("the jump of the node's own packets is gone", "missing", nat(without(/^-A OUTPUT .*KUBE-SERVICES/))),
  iptables(
    "a rule of others' stands in the way",
    "missing",
    nat(instead(/^-A KUBE-SERVICES .*"default\/svc-1 cluster IP"/, "-A KUBE-SERVICES -d 10.96.2.1/32 -j RETURN\n$&")),
  ),
  iptables(
    "a rejection is missing",
    "verdict",
    filter(without(/^-A KUBE-SERVICES .*"default\/svc-3 has no endpoints"/)),
  ),
  iptables("source ranges let everybody in", "verdict", filter(without(/^-A KUBE-PROXY-FIREWALL /))),
  iptables("a source range is missing", "verdict", nat(without(/^-A KUBE-FW-\S+ -s 198\.51\.100\.0\/24/))),
  iptables("affinity is lost", "affinity", nat(without(/--rcheck/))),
  iptables(
    "a service that is gone is left",
    "extra",
    nat(
      instead(
        /^-A KUBE-SERVICES .*"default\/svc-1 cluster IP".* -j (\S+)$/,
        "-A KUBE-SERVICES -d 10.96.77.7/32 -p tcp -m tcp --dport 81 -j $1\n$&",
      ),
    ),
  ),
  iptables(
    "the table is flushed",
    "missing",
    nat(() => []),
  ),
];

const nft = (what: string, kind: string, ...commands: readonly string[]): KernelDamage => ({
  what,
  kind,
  inflict: async (runner) => {
    await runner.run(["nft", "-f", "-"], { input: `${commands.join("\n")}\n` });
  },
});

/** A rule of a chain is deleted by its place, as nft tells it. */
const nftRule = (what: string, kind: string, chain: string, rule: RegExp): KernelDamage => ({
  what,
  kind,
  async inflict(runner) {
    const { stdout } = await runner.run(["nft", "-a", "list", "chain", "ip", "kube-proxy", chain]);
    const line = stdout.split("\n").find((one) => rule.test(one));
    const handle = /# handle (\d+)$/.exec(line ?? "")?.[1];
    if (handle === undefined) throw new Error(`no rule of chain ${chain} matches ${rule}:\n${stdout}`);
    await runner.run(["nft", "delete", "rule", "ip", "kube-proxy", chain, "handle", handle]);
  },
});

export const NFTABLES_DAMAGES: readonly KernelDamage[] = [
  nft("a service is missing", "verdict", "delete element ip kube-proxy service-ips { 10.96.2.1 . tcp . 80 }"),
  nft("a node port is missing", "missing", "delete element ip kube-proxy service-nodeports { tcp . 30001 }"),
  nft(
    "a service that is gone is left",
    "extra",
    "add element ip kube-proxy no-endpoint-services { 10.96.77.7 . tcp . 81 : drop }",
  ),
  nft("a hairpin's element is gone", "masquerade", "flush set ip kube-proxy hairpin-connections"),
  nftRule("masquerading is gone", "masquerade", "masquerading", /meta mark & /),
  nftRule("node ports are not asked", "missing", "services", /@service-nodeports/),
  nftRule("services are not asked", "verdict", "services", /@service-ips/),
  nftRule("the jump of what comes in is gone", "verdict", "nat-prerouting", /jump services/),
  nftRule("source ranges are not asked", "verdict", "firewall-check", /@firewall-ips/),
  nft("the table is flushed", "missing", "flush table ip kube-proxy"),
  nft("the table is gone", "missing", "delete table ip kube-proxy"),
];

/** What brings the rules of iptables back to what they are now. */
export async function iptablesAsNow(runner: Runner): Promise<() => Promise<void>> {
  const { stdout } = await runner.run(["iptables-save"]);
  return async () => {
    await runner.run(["iptables-restore"], { input: stdout });
  };
}

/** The same for the table of nftables mode. */
export async function tableAsNow(runner: Runner): Promise<() => Promise<void>> {
  const { stdout } = await runner.run(["nft", "list", "table", "ip", "kube-proxy"]);
  const anew = "add table ip kube-proxy\ndelete table ip kube-proxy\n";
  return async () => {
    await runner.run(["nft", "-f", "-"], { input: anew + stdout });
  };
}

const DEVICE = "kube-ipvs0";
const { clusterIP, port, nodePort } = workload(1, { endpoints: [] });
const endpoint = webA1.addresses.IPv4;
const address = clusterIP.IPv4;
const target: IpvsTarget = { address, port, destination: `${endpoint}:8080`, other: "10.96.77.7" };

/** The service that keeps its clients. */
const { clusterIP: keeping } = workload(4, { endpoints: [] });
const kept = `${keeping.IPv4}:${port}`;

const ipvs = (what: string, kind: string, script: string): KernelDamage => ({
  what,
  kind,
  inflict: async (runner) => void (await runner.run(["sh", "-ec", script])),
});

/** To the services of `damagedObjects`: each kind of object that ipvs mode has. */
export const IPVS_DAMAGES: readonly KernelDamage[] = [
  ipvs("a virtual server is missing", "missing", ipvsFaults.serverRemoved(target)),
  ipvs("a service that is gone is left", "extra", ipvsFaults.serverAdded(target)),
  ipvs("a node port is missing", "missing", `ipvsadm -D -t ${NODE_A.addresses.IPv4}:${nodePort}`),
  ipvs("a destination is missing", "endpoints", ipvsFaults.destinationRemoved(target)),
  ipvs("a destination too many", "endpoints", ipvsFaults.destinationAdded(target)),
  ipvs("a destination's weight is 0", "endpoints", `ipvsadm -e -t ${address}:${port} -r ${target.destination} -m -w 0`),
  ipvs(
    "a scheduler that heeds weights, and another weight",
    "shares",
    `${ipvsFaults.schedulerChanged(target)}; ${ipvsFaults.weightChanged(target)}`,
  ),
  ipvs("affinity is lost", "affinity", `ipvsadm -E -t ${kept} -s rr`),
  ipvs("affinity's time is another", "affinity", `ipvsadm -E -t ${kept} -s rr -p 60`),
  ipvs("a set's member is missing", "masquerade", ipvsFaults.entryRemoved(target)),
  ipvs("a hairpin's member is missing", "masquerade", `ipset del KUBE-LOOP-BACK ${endpoint},tcp:8080,${endpoint}`),
  ipvs("a set is emptied", "verdict", ipvsFaults.setEmptied()),
  ipvs("all source ranges are missing", "verdict", "ipset flush KUBE-LOAD-BALANCER-SOURCE-CIDR"),
  ipvs("source ranges let everybody in", "verdict", "iptables -F KUBE-SOURCE-RANGES-FIREWALL"),
  ipvs("an address of kube-ipvs0 is missing", "missing", ipvsFaults.addressDeleted(target)),
  ipvs("kube-ipvs0 is gone", "missing", ipvsFaults.deviceDeleted()),
  ipvs("a rule is missing", "masquerade", ipvsFaults.ruleRemoved()),
  ipvs(
    "a rule of others' stands in the way",
    "masquerade",
    `iptables -t nat -I KUBE-SERVICES 1 -d ${address} -j RETURN`,
  ),
  ipvs("the jump of what comes in is gone", "masquerade", "iptables -t nat -F PREROUTING"),
  ipvs("all virtual servers are gone", "missing", ipvsFaults.serversCleared()),
];

/** Brings virtual servers, members of sets, addresses and rules back to what they are now. */
export async function ipvsAsNow(runner: Runner): Promise<() => Promise<void>> {
  const text = async (...argv: [string, ...string[]]) => (await runner.run(argv)).stdout;
  const servers = await text("ipvsadm", "--save", "-n");
  const sets = await text("ipset", "save");
  const rules = await text("iptables-save");
  const listing = await text("ip", "-oneline", "address", "show", "dev", DEVICE);
  const bound = Array.from(listing.matchAll(/ inet6? (\S+)/g), ([, one]) => `address replace ${one} dev ${DEVICE}`);
  return async () => {
    await runner.run(["ipvsadm", "--clear"]);
    await runner.run(["ipvsadm", "--restore"], { input: servers });
    await runner.run(["ipset", "-exist", "restore"], { input: sets });
    await runner.run(["iptables-restore"], { input: rules });
    // That the device is there already is no failure.
    const lines = [`link add ${DEVICE} type dummy`, ...bound, ""];
    await runner.run(["sh", "-c", "ip -force -batch - || true"], { input: lines.join("\n") });
  };
}
