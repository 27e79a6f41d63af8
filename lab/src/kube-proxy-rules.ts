/**
 * What kube-proxy makes of the recorded scenarios: it runs in a network namespace whose one interface has the recorded
 * node's addresses, against the light API server, and the kernel's own tools print what is there.
 */

import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { familyOf, fieldsOf, IP_FAMILIES } from "@fairlead/base";
import type { IPFamily, LocalTrafficDetector } from "@fairlead/core";
import type { Argv, Runner } from "@fairlead/kernel";
import { createNamespace } from "@fairlead/kernel/netns";
import {
  type GoldenNode,
  goldenScenarios,
  node,
  type RawObject,
  type RecordedOptions,
  readMetrics,
  recordedScenarios,
  serviceCIDR,
} from "@fairlead/testkit";
import { kubeconfig } from "./control-plane/control-plane.ts";
import { runKubeProxy, startApi } from "./plain/kube-proxy.ts";
import { waitUntil } from "./support/wait-until.ts";
import { address, applyLines, type IpLines, runnerIn, up } from "./wire.ts";

/** File, below the folder of testkit's fixtures → its text. */
export type Recorded = ReadonlyMap<string, string>;

/** ipvs mode is recorded in User-Mode Linux, whose kernel has IPVS. */
type RecordedMode = "iptables" | "nftables" | "ipvs";

/** What kube-proxy runs with, alongside its mode. */
interface Scenario {
  readonly name: string;
  readonly options: RecordedOptions;
  readonly objects: readonly RawObject[];
  readonly node: GoldenNode;
}

interface Programmed {
  readonly rules: Recorded;
  /** The text of /metrics after the first sync. */
  readonly metrics: string;
}

interface WantedRecording {
  /** The folder of the scenario's recordings. */
  readonly place: "golden" | "golden-more";
  readonly mode: RecordedMode;
  readonly scenario: Scenario;
}

type Progress = (line: string) => void;

/** Records every scenario in iptables and nftables mode, where it has both, and the metrics of each mode. */
export async function recordRules(program: string, folder: string, progress: Progress): Promise<Recorded> {
  const wanted = [
    ...plainScenarios().flatMap((scenario): WantedRecording[] => [
      { place: "golden", mode: "iptables", scenario },
      { place: "golden", mode: "nftables", scenario },
    ]),
    ...recordedScenarios().map((scenario): WantedRecording => ({ place: "golden-more", mode: "iptables", scenario })),
  ];
  const { recorded, metrics } = await recordAll(wanted, program, folder, progress);
  return new Map([...recorded, ["golden/kube-proxy/metrics.tsv", metricsTable(metrics)]]);
}

/** Records the golden scenarios in ipvs mode, on a kernel that has IPVS. */
export async function recordServers(program: string, folder: string, progress: Progress): Promise<Recorded> {
  const wanted = plainScenarios().map((plain): WantedRecording => {
    const node = { ...plain.node, addresses: plain.node.addresses.map(ofIpvsNode) };
    return { place: "golden", mode: "ipvs", scenario: { ...plain, node } };
  });
  return (await recordAll(wanted, program, folder, progress)).recorded;
}

/** Records one scenario after the other, and of each mode the metrics of its first one. */
async function recordAll(wanted: readonly WantedRecording[], program: string, folder: string, progress: Progress) {
  const recorded = new Map<string, string>();
  const metrics = new Map<RecordedMode, string>();
  for (const { place, mode, scenario } of wanted) {
    progress(`${place}/${scenario.name}, ${mode} mode`);
    const { rules, metrics: text } = await programmed(program, mode, scenario, join(folder, mode, scenario.name));
    for (const [end, saved] of rules) recorded.set(`${place}/${scenario.name}.${end}`, saved);
    if (!metrics.has(mode)) metrics.set(mode, text);
  }
  return { recorded, metrics };
}

/** The recordings of ipvs mode are of the node 10.201.0.60, fd00:201::60. */
function ofIpvsNode(own: string): string {
  return own.replace(/10$/, "60");
}

function plainScenarios(): readonly Scenario[] {
  return goldenScenarios().map((scenario) => ({ ...scenario, options: { dualStack: scenario.dualStack } }));
}

/** A guest takes many times as long as the machine does. */
const SYNC_MS: Readonly<Record<RecordedMode, number>> = { iptables: 60_000, nftables: 60_000, ipvs: 600_000 };

const PAIR: IpLines = ["link add eth0 type veth peer name other", up("other")];

/** The machine's kernel may lack dummy devices; in ipvs mode the number of kube-ipvs0 is part of the recording. */
const DEVICE: Readonly<Record<RecordedMode, IpLines>> = {
  iptables: PAIR,
  nftables: PAIR,
  ipvs: ["link add eth0 type dummy"],
};

async function programmed(
  program: string,
  mode: RecordedMode,
  scenario: Scenario,
  folder: string,
): Promise<Programmed> {
  await using opened = new AsyncDisposableStack();
  const namespace = opened.use(await createNamespace());
  const runner = runnerIn(namespace);
  const lengths: Readonly<Record<IPFamily, number>> = { IPv4: 24, IPv6: 64 };
  await applyLines(runner, [
    ...DEVICE[mode],
    ...scenario.node.addresses.map((own) => address("eth0", `${own}/${lengths[familyOf(own)]}`)),
    up("eth0"),
  ]);
  const { name, zone, addresses } = scenario.node;
  const cluster = [node(name, { zone, addresses }), serviceCIDR("kubernetes", scenario.node.serviceCIDRs)];
  const api = await startApi(namespace, [...cluster, ...scenario.objects.map(withDefaults)]);
  opened.defer(api.stop);
  await mkdir(folder, { recursive: true });
  const kubeconfigFile = join(folder, "kubeconfig");
  await writeFile(kubeconfigFile, kubeconfig({ server: api.url }));
  const started = { program, folder, nodeName: name, configuration: configuration(mode, scenario, kubeconfigFile) };
  const daemon = await runKubeProxy(namespace, started);
  opened.defer(() => daemon.stop("SIGKILL"));
  const ask = () => synced(runner);
  const metrics = await waitUntil(`kube-proxy's first sync of ${scenario.name} (${folder}/log)`, SYNC_MS[mode], ask);
  return { metrics, rules: await SAVED[mode](runner, scenario.options.dualStack ? "both" : "one") };
}

/** What an API server fills in and kube-proxy relies on. */
function withDefaults(object: RawObject): RawObject {
  return object.kind === "Service" ? { ...object, spec: { type: "ClusterIP", ...fieldsOf(object["spec"]) } } : object;
}

const METRICS = "127.0.0.1:10249/metrics";

/** The text of /metrics once both families have been written. */
async function synced(runner: Runner): Promise<string | undefined> {
  const stdout = await runner.run(["curl", "-s", METRICS]).then(
    ({ stdout }) => stdout,
    () => undefined,
  );
  if (stdout === undefined) return undefined;
  const stamps = stdout.matchAll(/^kubeproxy_sync_proxy_rules_last_timestamp_seconds\S* (\S+)$/gm);
  const times = [...stamps].map(([, time]) => Number(time));
  return times.length === IP_FAMILIES.length && times.every((time) => time > 0) ? stdout : undefined;
}

type Families = "one" | "both";
type Saves = Readonly<Record<string, Argv>>;

const IPTABLES: Readonly<Record<Families, Saves>> = {
  one: { iptables: ["iptables-save"] },
  both: { iptables: ["iptables-save"], ip6tables: ["ip6tables-save"] },
};

const NFTABLES: Readonly<Record<Families, Saves>> = {
  one: { nft: ["nft", "list", "table", "ip", "kube-proxy"] },
  both: { nft: ["nft", "list", "ruleset"] },
};

/** The parts of the one file of ipvs mode, by their headings; the rules come after these. */
const IPVS: Saves = {
  ipvsadm: ["ipvsadm", "--save", "--numeric"],
  "kube-ipvs0": ["ip", "-oneline", "address", "show", "dev", "kube-ipvs0"],
  ipset: ["ipset", "save"],
};

/** kube-proxy makes the ipsets of both families everywhere. */
const OF_IPV6 = /^\w+ KUBE-6-.*\n/gm;

/** How the kernel's own tools print what a mode has written, by the end of a file's name. */
const SAVED: Readonly<Record<RecordedMode, (runner: Runner, families: Families) => Promise<Recorded>>> = {
  iptables: (runner, families) => saved(runner, IPTABLES[families]),
  nftables: (runner, families) => saved(runner, NFTABLES[families]),
  ipvs: async (runner, families) => {
    const parts = await saved(runner, { ...IPVS, ...IPTABLES[families] });
    const text = [...parts].map(([heading, part]) => `# ${heading}\n${part}`).join("");
    return new Map([["ipvs", families === "both" ? text : text.replaceAll(OF_IPV6, "")]]);
  },
};

async function saved(runner: Runner, saves: Saves): Promise<Recorded> {
  const texts = Object.entries(saves).map(async ([name, argv]) => {
    return [name, withoutCounts((await runner.run(argv)).stdout)] as const;
  });
  return new Map(await Promise.all(texts));
}

/** Without comments and the seeds of hashes, with counters at 0. */
function withoutCounts(save: string): string {
  return save
    .replaceAll(/^#.*\n/gm, "")
    .replaceAll(/\[\d+:\d+\]/g, "[0:0]")
    .replaceAll(/ initval 0x[\da-f]+/g, "");
}

function configuration(mode: RecordedMode, { options, node: { clusterCIDRs } }: Scenario, kubeconfigFile: string) {
  const { detectLocal, nodePortAddresses = [], localhostNodePorts = true } = options;
  const shared = { masqueradeAll: options.masqueradeAll ?? false, masqueradeBit: options.masqueradeBit ?? 14 };
  return {
    apiVersion: "kubeproxy.config.k8s.io/v1alpha1",
    kind: "KubeProxyConfiguration",
    mode,
    clientConnection: { kubeconfig: kubeconfigFile, contentType: "application/json" },
    ...(detectLocal === undefined ? { clusterCIDR: clusterCIDRs.join(",") } : localTraffic(detectLocal)),
    nodePortAddresses,
    iptables: { ...shared, localhostNodePorts },
    nftables: shared,
    // The machine's own limits stay.
    conntrack: { maxPerCore: 0, min: 0, tcpBeLiberal: options.tcpBeLiberal ?? false },
  };
}

function localTraffic(detector: LocalTrafficDetector) {
  switch (detector.kind) {
    case "bridge":
      return { detectLocalMode: "BridgeInterface", detectLocal: { bridgeInterface: detector.interface } };
    case "interface-prefix":
      return { detectLocalMode: "InterfaceNamePrefix", detectLocal: { interfaceNamePrefix: detector.prefix } };
    case "cidrs":
      return { clusterCIDR: detector.cidrs.join(",") };
    case "none":
      return { detectLocalMode: "ClusterCIDR" };
  }
}

/** The lines of `metrics.tsv`: name, type, labels, buckets and the modes in which a metric was there. */
function metricsTable(metrics: ReadonlyMap<RecordedMode, string>): string {
  const rows = new Map<string, { readonly columns: readonly string[]; readonly modes: readonly RecordedMode[] }>();
  for (const [mode, text] of metrics) {
    for (const [name, { type, labels, buckets }] of readMetrics(text)) {
      if (!name.startsWith("kubeproxy_")) continue;
      const { columns, modes } = rows.get(name) ?? {
        columns: [type, labels.join(",") || "-", [...new Set(buckets)].join(" ") || "-"],
        modes: [],
      };
      rows.set(name, { columns, modes: [...modes, mode] });
    }
  }
  const header = "# /metrics of kube-proxy: name, type, labels, histogram buckets, modes in which it was seen\n";
  const lines = [...rows].map(([name, { columns, modes }]) => `${[name, ...columns, modes.join(",")].join("\t")}\n`);
  return header + lines.sort().join("");
}
