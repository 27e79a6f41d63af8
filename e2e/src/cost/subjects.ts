/** The rules that packets meet in a guest: Fairlead's in each mode, and what kube-proxy wrote. */

import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { COUNTERS, createIptablesBackend, iptablesSemantics } from "@fairlead/backend-iptables";
import { createIpvsBackend, type IpvsPort, ipvsSemantics } from "@fairlead/backend-ipvs";
import { createNftablesBackend, type NftablesPort, nftablesSemantics } from "@fairlead/backend-nftables";
import type { ModeSemantics } from "@fairlead/core";
import type { Argv } from "@fairlead/kernel";
import { FakeIpset, FakeIptables, FakeIpvsadm, FakeLinks } from "@fairlead/kernel/fake";
import { createNamespace } from "@fairlead/kernel/netns";
import { kubeconfig, USERS } from "@fairlead/lab/control-plane/control-plane";
import { startApi, startKubeProxy } from "@fairlead/lab/plain/kube-proxy";
import { folderPrefix } from "@fairlead/lab/support/run-inventory";
import { waitUntil } from "@fairlead/lab/support/wait-until";
import { runnerIn } from "@fairlead/lab/wire";
import { renderLinkCommand, renderRuleSet, renderServerCommand, renderSetCommand } from "@fairlead/netfilter";
import { type GoldenNode, goldenNode, goldenPlannerOptions, type RawObject, TestCluster } from "@fairlead/testkit";
import { COUNTED, countedObjects, type GuestNeeds, inNode, NODE, type Subject } from "./measure.ts";

/** The devices of the fast path; undefined: without it. */
export type FastPath = readonly string[] | undefined;

/** The table as the agent's backend writes it: the transactions of its full sync, and that of the devices. */
export async function fairleadTable(
  name: string,
  file: string,
  objects: readonly RawObject[],
  fastPath: FastPath,
  node?: GoldenNode,
): Promise<Subject> {
  const { transactions } = await synced(clusterOn(objects, nftablesSemantics, node), fastPath);
  return subjectOf(name, file, transactions);
}

/** The same, with the transactions of a change of one endpoint, `FILE-there`, and of its way back, `FILE-back`. */
export async function fairleadChange(
  name: string,
  file: string,
  objects: readonly RawObject[],
  fastPath: FastPath,
): Promise<Subject> {
  const cluster = clusterOn(objects);
  const { backend, transactions } = await synced(cluster, fastPath);
  const subject = subjectOf(name, file, transactions);
  const change = async (endpoints: readonly string[]) => {
    transactions.length = 0;
    cluster.put(...countedObjects(endpoints));
    const change = cluster.replan().changes.get("IPv4");
    if (change !== undefined) await backend.apply(cluster.plan("IPv4"), change);
    const [only, more] = transactions;
    if (only === undefined || more !== undefined) throw new Error(`a change is ${transactions.length} transactions`);
    return only;
  };
  // The one in the last slot, so that the way back leads to where everything was.
  const there = await change([...COUNTED.endpoints.slice(0, -1), "10.144.201.1"]);
  const back = await change(COUNTED.endpoints);
  return { ...subject, files: { ...subject.files, [`${file}-there`]: there, [`${file}-back`]: back } };
}

function clusterOn(
  objects: readonly RawObject[],
  semantics: ModeSemantics = nftablesSemantics,
  node: GoldenNode = goldenNode(false),
): TestCluster {
  const [address = ""] = node.addresses;
  const cluster = new TestCluster(
    goldenPlannerOptions(node, semantics, {
      nodePortAddresses: { IPv4: { kind: "list", addresses: [address] } },
      serviceCIDRs: { IPv4: node.serviceCIDRs },
    }),
  );
  cluster.put(...objects);
  cluster.replan();
  return cluster;
}

async function synced(cluster: TestCluster, fastPath: FastPath) {
  const transactions: Uint8Array[] = [];
  const devices = new Map((fastPath ?? []).map((device, at) => [device, at + 1]));
  const backend = createNftablesBackend(recordingPort(transactions), {
    family: "IPv4",
    fastPath: fastPath !== undefined,
    devices: () => devices,
  });
  await backend.sync(cluster.plan("IPv4"));
  return { backend, transactions };
}

/** A kernel that takes everything and has nothing. */
function recordingPort(transactions: Uint8Array[]): NftablesPort {
  return {
    commit: async (batch) => void transactions.push(batch.finish()),
    roomFor: (wanted) => wanted,
    generation: async () => 0,
    table: async () => undefined,
    sets: async () => new Map(),
  };
}

function subjectOf(name: string, file: string, transactions: readonly Uint8Array[]): Subject {
  const files = Object.fromEntries(transactions.map((bytes, at) => [`${file}-${at}`, bytes]));
  const paths = Object.keys(files).map((own) => `/guest/${own}`);
  return { name, files, load: [`batch load ${NODE} ${paths.join(" ")}`] };
}

/** What a guest needs for rules of the legacy variant, which the tools load from what iptables-save prints. */
export const IPTABLES_GUEST: GuestNeeds = {
  programs: ["iptables-legacy-restore", "nfacct"],
  // The tool's own libraries are found by themselves, those of its matches are not.
  libraries: ["/usr/lib/x86_64-linux-gnu/xtables", "/lib/x86_64-linux-gnu/libm.so.6", "/etc/protocols"],
  modules: [
    ...["ip_tables", "iptable_nat", "iptable_filter", "iptable_mangle", "ipt_REJECT", "nfnetlink_acct"],
    ...["comment", "conntrack", "mark", "statistic", "nat", "MASQUERADE", "addrtype", "nfacct", "tcpudp"].map(
      (name) => `xt_${name}`,
    ),
  ],
  // A restore replaces what is there.
  flush: "true",
};

export function iptablesTables(name: string, file: string, text: string): Subject {
  const counters = COUNTERS.map((counter) => inNode(`sh -c "/bin/nfacct add ${counter} || true"`));
  return { name, files: { [file]: text }, load: [...counters, inNode(`iptables-legacy-restore /guest/${file}`)] };
}

function rulesText(fake: FakeIptables): string {
  const tables = [...fake.ruleSet()].filter(([table]) => table === "nat" || table === "filter");
  return [...renderRuleSet(new Map(tables))].join("");
}

/** The rules of the agent's backend after a full sync. */
export async function fairleadIptables(name: string, objects: readonly RawObject[], file = "own"): Promise<Subject> {
  const counters = new Set(COUNTERS);
  const fake = new FakeIptables({ family: "IPv4", variant: "legacy", nfacct: counters });
  const backend = createIptablesBackend(fake, { counters: async () => counters });
  await backend.sync(clusterOn(objects, iptablesSemantics).plan("IPv4"));
  return iptablesTables(name, file, rulesText(fake));
}

export const IPVS_GUEST: GuestNeeds = {
  ...IPTABLES_GUEST,
  programs: ["iptables-legacy-restore", "ipset", "ipvsadm"],
  modules: [
    ...(IPTABLES_GUEST.modules ?? []),
    ...["ip_vs", "ip_vs_rr", "dummy", "ip_set", "ip_set_hash_ip", "ip_set_hash_ipport", "ip_set_hash_ipportip"],
    ...["ip_set_hash_ipportnet", "ip_set_bitmap_port", "xt_set", "xt_ipvs"],
  ],
};

const SETTINGS = ["net.ipv4.vs.conntrack=1", "net.ipv4.vs.expire_nodest_conn=1"];

/** What the agent's backend does in a full sync, as the tools take it. */
export async function fairleadIpvs(name: string, objects: readonly RawObject[]): Promise<Subject> {
  const { port, lines, rules } = ipvsRecordingPort();
  await createIpvsBackend(port).sync(clusterOn(objects, ipvsSemantics).plan("IPv4"));
  const text = (of: readonly string[]) => of.map((line) => `${line}\n`).join("");
  const files = {
    links: text(lines.links),
    sets: text(lines.sets),
    servers: text(lines.servers),
    rules: rulesText(rules),
  };
  const load = [
    `sysctl -q -w ${SETTINGS.join(" ")}`,
    "ip -batch /guest/links",
    "ipset restore -exist -file /guest/sets",
    "sh -c '/bin/ipvsadm --restore < /guest/servers'",
    "iptables-legacy-restore /guest/rules",
  ];
  return { name, files, load: load.map(inNode) };
}

/** A kernel in memory, and the commands that it is given. */
function ipvsRecordingPort() {
  const lines = { servers: [] as string[], sets: [] as string[], links: [] as string[] };
  const [servers, sets, links] = [new FakeIpvsadm(), new FakeIpset(), new FakeLinks()];
  const rules = new FakeIptables({ family: "IPv4", variant: "legacy", sets });
  const port: IpvsPort = {
    servers: {
      save: () => servers.save(),
      connections: (of) => servers.connections(of),
      change: (commands) => servers.change(noted(commands, renderServerCommand, lines.servers)),
    },
    sets: {
      save: (names) => sets.save(names),
      change: (commands) => sets.change(noted(commands, renderSetCommand, lines.sets)),
    },
    links: {
      addresses: (device) => links.addresses(device),
      change: (commands) => links.change(noted(commands, renderLinkCommand, lines.links)),
    },
    rules,
  };
  return { port, lines, rules };
}

function noted<T>(commands: Iterable<T>, render: (command: T) => string, to: string[]): readonly T[] {
  const all = [...commands];
  for (const command of all) to.push(render(command));
  return all;
}

/** kube-proxy's first sync of ten thousand services, and what nft takes to list them. */
const PATIENCE_MS = 20 * 60_000;

const SYNCED = /SyncProxyRules complete.*ipFamily="IPv4"/;

const SAVE = {
  nftables: ["nft", "list", "table", "ip", "kube-proxy"],
  iptables: ["iptables-legacy-save"],
} as const satisfies Record<string, Argv>;

/** Has the real kube-proxy program a namespace of this machine's kernel, and gives what the tools print of it. */
export async function recordKubeProxy(
  program: string,
  mode: keyof typeof SAVE,
  objects: readonly RawObject[],
): Promise<string> {
  await using opened = new AsyncDisposableStack();
  const folder = await mkdtemp(join(tmpdir(), `${folderPrefix}-record-`));
  opened.defer(() => rm(folder, { recursive: true, force: true }));
  const namespace = opened.use(await createNamespace());
  const api = await startApi(namespace, objects);
  opened.defer(api.stop);
  const access = join(folder, "kubeconfig");
  await writeFile(access, kubeconfig({ server: api.url, token: USERS.proxy.token }));
  const settings = { mode, variant: "legacy", program, kubeconfig: access, folder } as const;
  const kubeProxy = await startKubeProxy({ namespace: () => namespace }, settings);
  opened.defer(() => kubeProxy.stop());
  // The log file comes with the process.
  const log = () => kubeProxy.log().catch(() => "");
  const synced = waitUntil("kube-proxy's first sync", PATIENCE_MS, async () => SYNCED.test(await log()) || undefined);
  const ended = kubeProxy.ended.then(async (how) => Promise.reject(new Error(`${how}: ${(await log()).slice(-2000)}`)));
  await Promise.race([synced, ended]);
  const { stdout } = await runnerIn(namespace).run([...SAVE[mode]], { timeoutMs: PATIENCE_MS });
  return stdout;
}

export function kubeProxyTable(name: string, text: string): Subject {
  return { name, files: { "kube-proxy": text }, load: [inNode("nft -f /guest/kube-proxy")] };
}
