/** Networks with a load balancer of their own. */

import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { NAT_OUTGOING } from "@fairlead/lab/cni/ovn/index";
import { type ApiObject, objectPath } from "@fairlead/lab/control-plane/api-client";
import type { ClusterNode, ClusterShape, NetworkShape } from "@fairlead/lab/provider/cluster";
import { networkCIDRs } from "@fairlead/lab/provider/netns/agent";
import { SERVICE_CIDRS } from "@fairlead/lab/provider/netns/ground";
import { requireTool, tool } from "@fairlead/lab/tools/page-reader";
import { expectAnswers, expectRefused } from "../expect.ts";
import { ONE_IS_AN_ANSWER } from "../operator.ts";
import {
  able,
  each,
  nearAndFar,
  needs,
  notIn,
  onlyIn,
  onlyIPv4,
  restoreAgents,
  type Scene,
  type ServiceHandle,
  type Spec,
} from "../spec.ts";
import { excludedNetwork, expectForeign, needsExcluded, needsOwnLoadBalancer } from "./untouched.ts";

const PORTS = [{ port: 80 }];

const translated: Spec = {
  name: "pods of a network with a load balancer of its own call our service: it translates, and no node sees the ClusterIP",
  suite: "multi-cni",
  unfit: needsOwnLoadBalancer,
  run: async (scene) => {
    const { theirs, by, target, address } = await openOurs(scene);
    await expectAnswers(theirs, target, { by });
    const empty = await scene.service("empty", { ports: PORTS });
    const [first] = scene.nodes;
    const [served, refused] = await Promise.all([
      countPackets(scene, first, address, target.to),
      countPackets(scene, first, address, empty.clusterIP),
    ]);
    await expectAnswers(theirs, target, { by });
    // It has nothing of a service without endpoints: those packets come to the node, and are refused.
    await expectRefused(theirs, { to: empty.clusterIP, port: 80 });
    const [atOurs, atEmpty] = [await served(), await refused()];
    if (atOurs !== 0 || !(atEmpty > 0)) {
      throw new Error(
        `wanted 0 packets to the ClusterIP on the node, and some to the empty one: ${atOurs}, ${atEmpty}`,
      );
    }
  },
};

const HIDDEN = "flannel gives what comes to its pods from elsewhere the node's address";

const keptAddress: Spec = {
  name: "the same where its pods keep their addresses (natOutgoing off): answers come back past the node of the pod that calls",
  suite: "multi-cni",
  byItself: true,
  unfit: (shape) => needsOwnLoadBalancer(shape) ?? (showsCallers(shape) === undefined ? HIDDEN : undefined),
  run: async (scene) => {
    const { theirs, by, target, address } = await openOurs(scene, showsCallers(scene.cluster)?.name);
    await keepAddresses(scene);
    await expectAnswers(theirs, target, { by, seen: address });
  },
};

export const ownBalancer: readonly Spec[] = [translated, keptAddress];

export const kubeOVNReject: Spec = {
  name: "kube-ovn's REJECT in ipvs mode: pods are refused at ClusterIPs, doctor finds it, and --masquerade-all helps",
  suite: "multi-cni",
  about: ["backend-ipvs"],
  eachFamily: false,
  byItself: true,
  unfit: (shape) =>
    onlyIn(["ipvs"], "kube-ovn has it alongside ipvs mode only")(shape) ??
    needs("learn")(shape) ??
    onlyIPv4("its set is of IPv4")(shape),
  run: async (scene) => {
    const [first] = scene.nodes;
    const { caller, by } = await nearAndFar(scene);
    const service = await scene.service("web", { selector: { app: "web" }, ports: [{ port: 80 }] });
    const target = { to: service.clusterIP, port: 80 };
    await expectAnswers(caller, target, { by });
    await each(scene, (node) => asKubeOVN(scene, node));
    await expectRefused(caller, target);
    // It is masqueraded anyway.
    await expectAnswers(first, target, { by });
    const found = await diagnosis(scene, first);
    if (!found.startsWith("✗")) throw new Error(`wanted doctor to find kube-ovn's REJECT; came ${found}`);
    restoreAgents(scene);
    await each(scene, ({ agent }) => agent.restart({ flags: ["--masquerade-all"] }));
    await expectAnswers(caller, target, { by });
  },
};

const toolOf = ({ family }: Scene) => (family === "IPv6" ? "ip6tables" : "iptables");

/** A service of ours with an endpoint on each node, and a pod of the excluded network that calls from the first. */
async function openOurs(scene: Scene, own = scene.network.name) {
  const [first, second] = scene.nodes;
  const network = excludedNetwork(scene.cluster).name;
  const [near, far, theirs] = await Promise.all([
    scene.pod({ node: first, network: own, app: "web" }),
    scene.pod({ node: second, network: own, app: "web" }),
    scene.pod({ node: first, network }),
  ]);
  const { clusterIP } = await scene.service("web", { selector: { app: "web" }, ports: PORTS });
  return {
    theirs,
    by: [near, far],
    target: { to: clusterIP, port: 80 },
    address: theirs.addresses[scene.family] ?? "",
  };
}

/** Packets of an address to another one that come to a node, from now on. @returns how many there were */
async function countPackets(scene: Scene, { run }: ClusterNode, from: string, to: string) {
  const rule = ["PREROUTING", "-s", from, "-d", to];
  const tool = toolOf(scene);
  await run([tool, "-t", "raw", "-A", ...rule]);
  scene.later(async () => void (await run([tool, "-t", "raw", "-D", ...rule])));
  return async (): Promise<number> => {
    const { stdout } = await run([`${tool}-save`, "-c", "-t", "raw"]);
    const line = stdout.split("\n").find((one) => one.includes(`-s ${from}/`) && one.includes(`-d ${to}/`)) ?? "";
    return Number(/^\[(\d+):/.exec(line)?.[1]);
  };
}

/**
 * As an operator who sets `natOutgoing: false` on kube-ovn's Subnet, on nodes where its daemon began after the proxy:
 * what it accepts comes before the proxy's rules.
 */
async function keepAddresses(scene: Scene): Promise<void> {
  const tool = toolOf(scene);
  const pods = excludedNetwork(scene.cluster).podCIDRs[scene.family] ?? "";
  const accepted = [
    ["-s", pods],
    ["-d", pods],
  ].map((match) => ["FORWARD", ...match, "-j", "ACCEPT"]);
  await each(scene, async ({ run }) => {
    scene.later(async () => {
      for (const rule of accepted) await run([tool, "-D", ...rule]);
      await run([tool, "-t", "nat", "-A", ...NAT_OUTGOING]);
    });
    for (const rule of accepted) await run([tool, "-I", ...rule]);
    await run([tool, "-t", "nat", "-D", ...NAT_OUTGOING]);
  });
}

/** The first network of ours whose pods see the address of a caller in another network. */
function showsCallers({ networks }: ClusterShape): NetworkShape | undefined {
  return networks.find(({ name, excluded }) => !excluded && name !== "flannel");
}

const SET = "ovn40services";
/** As kube-ovn has it where there is the ipset KUBE-CLUSTER-IP (pkg/daemon/gateway_linux.go). */
const REJECT =
  `-p tcp -m mark ! --mark 0x4000/0x4000 -m set --match-set ${SET} dst -m conntrack --ctstate NEW ` +
  "-j REJECT --reject-with icmp-port-unreachable";
const CHAINS = ["INPUT", "OUTPUT"] as const;

/** What kube-ovn's daemon does to a node. It goes with the spec. */
async function asKubeOVN({ later }: Scene, { run }: ClusterNode): Promise<void> {
  later(async () => {
    for (const chain of CHAINS) await run(["iptables", "-D", chain, ...REJECT.split(" ")]);
    await run(["ipset", "destroy", SET]);
  });
  await run(["ipset", "create", SET, "hash:net"]);
  await run(["ipset", "add", SET, SERVICE_CIDRS.IPv4]);
  for (const chain of CHAINS) await run(["iptables", "-I", chain, "1", ...REJECT.split(" ")]);
}

/** What `fairlead doctor` says of it on a node. */
async function diagnosis({ cluster }: Scene, { run }: ClusterNode): Promise<string> {
  await requireTool();
  const cidrs = networkCIDRs(cluster, { excluded: false }).flatMap((cidr) => ["--cluster-cidr", cidr]);
  const argv = [process.execPath, tool, "doctor", "--mode", cluster.mode, ...cidrs];
  const { stdout } = await run(["sh", "-c", ONE_IS_AN_ANSWER, "sh", ...argv]);
  return stdout.split("\n").find((line) => line.includes("kube-ovn's REJECT")) ?? stdout;
}

const WEBHOOK = fileURLToPath(new URL("programs/webhook-main.ts", import.meta.url));
const PORT = 8443;
const NAME = "webhook";
const onlyOthers = notIn(["ipvs"], "ipvs mode cannot distinguish the clients of an address");

/** A certificate for the name that the API server asks a webhook for. */
async function certificateFor(scene: Scene) {
  const { cluster, namespace } = scene;
  const folder = await scene.folder();
  const [certFile, keyFile] = [join(folder, "tls.crt"), join(folder, "tls.key")];
  const host = `${NAME}.${namespace}.svc`;
  const key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", keyFile];
  const names = ["-subj", "/CN=webhook", "-addext", `subjectAltName=DNS:${host}`];
  await cluster.apiServer.run(["openssl", "req", "-x509", "-days", "2", ...key, ...names, "-out", certFile]);
  return { certFile, keyFile, caBundle: (await readFile(certFile)).toString("base64") };
}

/**
 * The API server is on no node, so its calls of this service are led to a node, whose rules they meet as they come in.
 */
async function leadOver({ cluster, nodes, family, later }: Scene, { clusterIP }: ServiceHandle): Promise<void> {
  const [{ addresses }] = nodes;
  const route = [`${clusterIP}/${family === "IPv4" ? 32 : 128}`, "via", addresses[family] ?? ""];
  await cluster.apiServer.run(["ip", "route", "add", ...route]);
  later(async () => void (await cluster.apiServer.run(["ip", "route", "del", ...route])));
}

function configuration(namespace: string, caBundle: string): ApiObject {
  const rule = { apiGroups: [""], apiVersions: ["v1"], operations: ["CREATE"], resources: ["configmaps"] };
  return {
    apiVersion: "admissionregistration.k8s.io/v1",
    kind: "ValidatingWebhookConfiguration",
    metadata: { name: namespace },
    webhooks: [
      {
        name: "deny.fairlead.test",
        clientConfig: { service: { name: NAME, namespace, port: 443 }, caBundle },
        rules: [rule],
        namespaceSelector: { matchLabels: { "kubernetes.io/metadata.name": namespace } },
        ...{ failurePolicy: "Fail", sideEffects: "None", admissionReviewVersions: ["v1"], timeoutSeconds: 2 },
      },
    ],
  };
}

async function ask({ cluster, namespace }: Scene, labels: Readonly<Record<string, string>> = {}): Promise<string> {
  const metadata = { generateName: "one-", namespace, labels, name: "" };
  return cluster.api.create({ apiVersion: "v1", kind: "ConfigMap", metadata }).then(
    () => "made",
    (error: unknown) => String(error),
  );
}

async function untilAnswered(scene: Scene, wanted: string, labels?: Readonly<Record<string, string>>): Promise<void> {
  await scene.until(`an object to be answered with "${wanted}"`, async () => {
    const answer = await ask(scene, labels);
    return answer.includes(wanted) ? undefined : answer;
  });
}

export const webhook: Spec = {
  name: "excluded-clients: the API server calls an admission webhook of the excluded network by its ClusterIP",
  suite: "multi-cni",
  about: ["endpoint-filter", "backend-iptables", "backend-nftables", "backend-userspace"],
  byItself: true,
  unfit: (shape) => onlyOthers(shape) ?? needs("learn")(shape) ?? needs("webhook")(shape) ?? needsExcluded(shape),
  run: async (scene) => {
    const { cluster, namespace } = scene;
    const { certFile, keyFile, caBundle } = await certificateFor(scene);
    const pod = await scene.pod({ node: scene.nodes[1], network: excludedNetwork(cluster).name, app: NAME });
    const server = await able(pod.startScript)(WEBHOOK, [certFile, keyFile, String(PORT)]);
    const service = await scene.service(NAME, { selector: { app: NAME }, ports: [{ port: 443, targetPort: PORT }] });
    await expectForeign(scene, service.name);
    await leadOver(scene, service);
    const hook = configuration(namespace, caBundle);
    scene.later(() => cluster.api.delete(objectPath(hook)));
    await cluster.api.create(hook);
    // Left to its network whole, it is out of the nodes' reach.
    await untilAnswered(scene, "failed calling webhook");
    restoreAgents(scene);
    // Before the way there goes: the API server's connection would stay half closed, and its namespace with it.
    scene.later(server.stop);
    await each(scene, ({ agent }) => agent.restart({ flags: ["--excluded-frontends=excluded-clients"] }));
    await untilAnswered(scene, "made");
    await untilAnswered(scene, "denied the request: it has the label deny", { deny: "" });
    const { admitted, denied, from } = JSON.parse(await server.ask("seen"));
    if (admitted !== 1 || denied !== 1) throw new Error(`wanted one of each; ${admitted} admitted, ${denied} denied`);
    return { "called from": from.join(", ") };
  },
};
