/** `fairlead connectivity` on the cluster, also with something that is broken. */

import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fieldsOf, itemsOf, stringOf } from "@fairlead/base";
import type { Argv, RunOptions, RunResult } from "@fairlead/kernel";
import {
  type ClusterShape,
  DNS_PORT,
  type DnsRecord,
  type Pod,
  type Removable,
  type WholeKubernetes,
} from "@fairlead/lab/provider/cluster";
import { networkCIDRs } from "@fairlead/lab/provider/netns/agent";
import { requireTool, tool } from "@fairlead/lab/tools/page-reader";
import { behindFront, lackingKubeProxy, ONE_IS_AN_ANSWER, withKubeProxy } from "./operator.ts";
import { NAME } from "./secondary.ts";
import { able, createService, each, type Figures, needs, onlyIn, type Scene, type Spec } from "./spec.ts";

const COMMON = { suite: "swap", about: ["cli"], eachFamily: false } as const;

const withFairlead: Spec = {
  ...COMMON,
  name: "fairlead connectivity: every case is as it should be",
  unfit: needsPods,
  run: async (scene) => {
    const connectivity = await openConnectivity(scene);
    const isOnlyOurs = !scene.cluster.networks.some(({ excluded }) => excluded);
    if (isOnlyOurs) return expectGreen(scene, connectivity);
    const figures = await expectGreen(scene, connectivity, "--keep");
    await expectNotForeign(scene, connectivity);
    return figures;
  },
};

const inPlaceOfFairlead: Spec = {
  ...COMMON,
  name: "fairlead connectivity: every case is as it should be with kube-proxy",
  unfit: (shape: ClusterShape) => needs("kubelet")(shape) ?? lackingKubeProxy(shape),
  run: (scene) => withKubeProxy(scene, async () => expectGreen(scene, await openConnectivity(scene))),
};

const withInstance: Spec = {
  ...COMMON,
  name: "fairlead connectivity --service-proxy-name: every case is as it should be with a second instance",
  unfit: (shape) => needs("kubelet")(shape) ?? needs("instance")(shape),
  run: async (scene) => {
    const instances: Removable[] = [];
    scene.later(() => Promise.all(instances.map((one) => one.remove())).then(() => {}));
    await each(scene, async (node) => void instances.push(await able(node.startInstance)(NAME)));
    return expectGreen(scene, await openConnectivity(scene), "--service-proxy-name", NAME);
  },
};

export const connectivity: readonly Spec[] = [withFairlead, inPlaceOfFairlead, withInstance];

const KEPT = ["--keep", "--no-update", "--patience"] as const;

const DELETED: readonly (readonly [service: string, what: string, line: string])[] = [
  ["web", "the ClusterIP's", "-A KUBE-SERVICES .*/web:tcp cluster IP"],
  ["web", "the ClusterIP's, UDP", "-A KUBE-SERVICES .*/web:udp cluster IP"],
  ["web", "the node port's", '-A KUBE-NODEPORTS .*/web:tcp"'],
  ["web", "the external IP's", "-A KUBE-SERVICES .*/web:tcp external IP"],
  ["web", "the load balancer's", "-A KUBE-SERVICES .*/web:tcp loadbalancer IP"],
  [
    "web",
    "the masquerading of what comes from outside",
    "-A KUBE-EXT-.* for [^ ]*/web:tcp external.*-j KUBE-MARK-MASQ",
  ],
  ["web-local", "the node port's, Local", '-A KUBE-NODEPORTS .*/web-local:tcp"'],
  ["web-internal", "its endpoint's", "-A KUBE-SVL-.*/web-internal:tcp -> "],
  ["web-sticky", "affinity's", "-A KUBE-SVC-.*/web-sticky:tcp -> .*--rcheck"],
  ["web-headless", "the cluster DNS's", "-A KUBE-SERVICES .*kube-system/kube-dns:dns cluster IP"],
  ["web-hairpin", "the masquerading of a hairpin", "-A KUBE-SEP-.*/web-hairpin:tcp.*-j KUBE-MARK-MASQ"],
];

export const deletedByHand: Spec = {
  name: "fairlead connectivity: each of eleven rules deleted by hand is seen, with its service",
  suite: "faults",
  about: ["cli"],
  eachFamily: false,
  unfit: (shape, family) =>
    needs("kubelet")(shape) ??
    needs("dns", "apt-get install dnsmasq-base")(shape) ??
    onlyIn(["iptables"], "deletes rules of iptables mode")(shape) ??
    (family === "IPv4" ? undefined : "deletes rules of IPv4"),
  run: async (scene) => {
    const connectivity = await openConnectivity(scene);
    const whole = complaintsOf(await connectivity.run(...KEPT, "20"));
    if (whole.length > 0) throw new Error(`wanted no complaint; came\n${whole.join("\n")}`);
    // From now on nothing repairs anything; agents go on again before anything is asked of them.
    const goOn = () => each(scene, ({ agent }) => agent.signal("SIGCONT"));
    scene.later(() => each(scene, ({ agent }) => agent.restart()));
    await each(scene, ({ agent }) => agent.signal("SIGSTOP"));
    try {
      await seenWithout(scene, connectivity);
    } finally {
      await goOn();
    }
    return { rules: String(DELETED.length) };
  },
};

/** Fewer would mean that a kind of frontend or a place is missing. */
const LEAST_CASES = 30;

/** Its pods are Pods of the API: kubelets run them, or the ground's stand-in for one. */
function needsPods(shape: ClusterShape): string | undefined {
  return shape.provider === "kind" ? undefined : needs("kubelet")(shape);
}

/** What `fairlead connectivity -o json` says, as far as it is looked at. */
interface Report {
  readonly cases: readonly (Row & { readonly family: string; readonly frontend: string; readonly place: string })[];
  readonly checks: readonly { readonly name: string; readonly complaint?: string; readonly skipped?: string }[];
}

interface Connectivity {
  readonly namespace: string;
  run(...more: readonly string[]): Promise<Report>;
}

async function expectGreen(scene: Scene, connectivity: Connectivity, ...more: readonly string[]): Promise<Figures> {
  const report = await connectivity.run(...more);
  const complaints = [...complaintsOf(report), ...leftOut(scene, report)];
  if (complaints.length > 0) throw new Error(`wanted no complaint; came\n${complaints.join("\n")}`);
  const { length } = report.cases;
  const least = LEAST_CASES * scene.cluster.families.length;
  if (length < least) throw new Error(`wanted ${least} cases at least; came ${length}`);
  return { cases: String(length), checks: report.checks.map(({ name }) => name).join(", ") };
}

const FOREIGN = "another network's service is ignored";

/** A network that the agents serve, given as another one's. */
async function expectNotForeign({ network, family }: Scene, { run }: Connectivity): Promise<void> {
  const own = network.podCIDRs[family] ?? "";
  const { checks } = await run("--keep", "--no-update", "--patience", "5", "--exclude-cluster-cidr", own);
  const { complaint = "none" } = checks.find(({ name }) => name === FOREIGN) ?? {};
  if (/web-foreign on \S+: .*the agent takes it for ours/.test(complaint)) return;
  throw new Error(`wanted a complaint of a service in ${own}, which is the agents' own; came ${complaint}`);
}

/** What was deleted comes back with all else. */
const SAVE = 'iptables-save -t nat > "$1"';
const RESTORE = 'iptables-restore < "$1"';
const DELETE = `
  lines=$(iptables-save -t nat | grep -E -- "$1" | sed 's/^-A/-D/') || { echo "no rule has $1" >&2; exit 3; }
  printf '*nat\\n%s\\nCOMMIT\\n' "$lines" | iptables-restore --noflush
`;

/** Deletes one after the other, and puts each back. */
async function seenWithout(scene: Scene, connectivity: Connectivity): Promise<void> {
  const folder = await scene.folder();
  const file = (name: string) => join(folder, `${name}.rules`);
  await each(scene, async ({ run, name }) => void (await run(["sh", "-c", SAVE, "sh", file(name)])));
  for (const [service, what, line] of DELETED) {
    await each(scene, async ({ run }) => void (await run(["sh", "-c", DELETE, "sh", line])));
    const complaints = complaintsOf(await connectivity.run(...KEPT, "2"));
    const others = complaints.filter((one) => !one.startsWith(`${service}: `));
    if (complaints.length === 0) throw new Error(`wanted a complaint of ${service} without ${what} rule; came none`);
    if (others.length > 0)
      throw new Error(`wanted complaints of ${service} only, without ${what} rule; came\n${others.join("\n")}`);
    await each(scene, async ({ run, name }) => void (await run(["sh", "-c", RESTORE, "sh", file(name)])));
  }
}

const NAMESPACE = "kube-system";
const LABELS = { "k8s-app": "kube-dns" };
const PAUSE_MS = 100;
const PORTS = [
  { name: "dns", port: 53, targetPort: DNS_PORT, protocol: "UDP" },
  { name: "dns-tcp", port: 53, targetPort: DNS_PORT, protocol: "TCP" },
];

/**
 * A cluster DNS as far as it is asked: a server behind kube-system/kube-dns that knows one headless service, whose
 * endpoints it follows.
 *
 * @returns its ClusterIP
 */
async function openClusterDNS(scene: Scene, service: { readonly namespace: string; readonly name: string }) {
  const { cluster, nodes, family, network, later } = scene;
  const wanted = { namespace: NAMESPACE, network: network.name, node: nodes[1], labels: LABELS };
  const pod = await cluster.startPod(wanted);
  later(() => pod.remove());
  const spec = { selector: LABELS, ports: PORTS };
  const where = { name: "kube-dns", namespace: NAMESPACE, annotations: {} };
  const { clusterIP, remove } = await createService(cluster.api, { ...where, family, spec });
  later(remove);
  const stop = new AbortController();
  const following = follow(scene, service, pod, stop.signal);
  later(async () => {
    stop.abort();
    await following;
  });
  return clusterIP;
}

async function follow(
  { cluster: { api } }: Scene,
  { namespace, name }: { readonly namespace: string; readonly name: string },
  pod: Pod,
  signal: AbortSignal,
): Promise<void> {
  const path = `/apis/discovery.k8s.io/v1/namespaces/${namespace}/endpointslices?labelSelector=kubernetes.io/service-name%3D${name}`;
  let served = "";
  while (!signal.aborted) {
    // The API server may be away.
    const list = await api.get(path).catch(() => undefined);
    const records = list === undefined ? [] : recordsOf(list, `${name}.${namespace}.svc.cluster.local`);
    const text = JSON.stringify(records);
    if (list !== undefined && text !== served) {
      await able(pod.serveDns)(records);
      served = text;
    }
    await sleep(PAUSE_MS, undefined, { signal }).catch(() => undefined);
  }
}

function recordsOf(list: unknown, name: string): readonly DnsRecord[] {
  return itemsOf(fieldsOf(list)["items"]).flatMap((slice) => {
    const { addressType, endpoints } = fieldsOf(slice);
    const ready = itemsOf(endpoints).filter((one) => fieldsOf(fieldsOf(one)["conditions"])["ready"] !== false);
    const addresses = ready.flatMap((one) =>
      itemsOf(fieldsOf(one)["addresses"]).flatMap((text) => stringOf(text) ?? []),
    );
    const type = addressType === "IPv6" ? "AAAA" : "A";
    return addresses.sort().map((value): DnsRecord => ({ name, type, value }));
  });
}

interface Row {
  readonly service: string;
  readonly complaint?: string;
}

async function openConnectivity(scene: Scene): Promise<Connectivity> {
  await requireTool();
  const { cluster, nodes, later } = scene;
  const namespace = `${scene.namespace}-test`;
  const dns = hasOwnDNS(scene) ? await openClusterDNS(scene, { namespace, name: "web-headless" }) : undefined;
  const kubelet = await cluster.runPodsOf?.(namespace, dns);
  later(async () => kubelet?.dispose());
  const { argv: where, run } =
    cluster.kubernetes === undefined ? await fromOutside(scene) : fromHost(cluster.kubernetes, cluster);
  const named = ["--namespace", namespace, ...nodes.flatMap(({ name }) => ["--node", name])];
  const argv = [process.execPath, tool, "connectivity", ...where, ...named, "-o", "json"];
  const excluded = networkCIDRs(cluster, { excluded: true }).flatMap((cidr) => ["--exclude-cluster-cidr", cidr]);
  const asked = async (...more: readonly string[]) =>
    (await run(["sh", "-c", ONE_IS_AN_ANSWER, "sh", ...argv, ...more], { timeoutMs: 0 })).stdout;
  later(async () => void (await asked("--cleanup-only")));
  return { namespace, run: async (...more) => JSON.parse(await asked(...more, ...excluded)) };
}

/** Whether the spec brings a cluster DNS: whole Kubernetes has one. */
function hasOwnDNS({ cluster: { kubernetes, abilities = [] } }: Scene): boolean {
  return kubernetes === undefined && abilities.includes("dns");
}

/** Checks that the cluster can carry, and that were left out all the same. */
function leftOut(scene: Scene, { checks }: Report): readonly string[] {
  const hasDNS = scene.cluster.kubernetes !== undefined || hasOwnDNS(scene);
  const hasForeign = scene.cluster.networks.some(({ excluded }) => excluded);
  const wanted = [hasDNS && "DNS", hasForeign && FOREIGN];
  return checks.flatMap(({ name, skipped }) => {
    return skipped !== undefined && wanted.includes(name) ? [`${name} was left out: ${skipped}`] : [];
  });
}

interface Caller {
  readonly argv: readonly string[];
  run(argv: Argv, options?: RunOptions): Promise<RunResult>;
}

/** Beyond the nodes, which it reaches: pods are processes, whatever their image is. */
async function fromOutside(scene: Scene): Promise<Caller> {
  const { cluster, nodes } = scene;
  const [first] = nodes;
  // Agents are asked for a service's owner: they are not pods of the real server.
  const file = await behindFront(scene, able(cluster.outside.namespace));
  const external = cluster.families.flatMap((family) =>
    Array.from({ length: 4 }, () => ["--external-address", cluster.gateAddress(first, family)]).flat(),
  );
  const argv = ["--kubeconfig", file, "--outside", "--image", "any", ...external];
  return { argv, run: able(cluster.outside.run) };
}

/** Where the administrator is: pods have the agents' image. */
function fromHost({ kubeconfig: file }: WholeKubernetes, { apiServer }: Scene["cluster"]): Caller {
  return { argv: ["--kubeconfig", file], run: (argv, options) => apiServer.run(argv, options) };
}

function complaintsOf({ cases, checks }: Report): readonly string[] {
  const rows = cases.flatMap(({ service, frontend, place, family, complaint }) =>
    complaint === undefined ? [] : [`${service}: ${frontend} (${family}) from ${place}: ${complaint}`],
  );
  return [
    ...rows,
    ...checks.flatMap(({ name, complaint }) => (complaint === undefined ? [] : [`${name}: ${complaint}`])),
  ];
}
