import { modeNamed } from "@fairlead/lab/modes";
import { type Client, type Cluster, DNS_PORT, type DnsRecord, type Pod } from "@fairlead/lab/provider/cluster";
import { PLAIN_TOOL } from "@fairlead/lab/support/machine";
import { expectAnswers, expectBytes, expectRefused, type Target } from "../expect.ts";
import { able, nearAndFar, needs, type Scene, type Spec } from "../spec.ts";

const PORTS = [{ port: 80, targetPort: 8080 }];

const clusterIP: Spec = {
  name: "ClusterIP: pods, nodes and the outside reach endpoints of both nodes",
  suite: "services",
  run: async (scene) => {
    const { near, far, caller, by } = await nearAndFar(scene);
    const service = await scene.service("web", { selector: { app: "web" }, ports: PORTS });
    const target = { to: service.clusterIP, port: 80 };
    await askEveryone(scene, target, caller, by);
    await expectAnswers(caller, target, { by, ...sourceOf(scene, caller) });
    await expectAnswers(far, target, { by });
    await expectAnswers(near, target, { by });
  },
};

const nodePort: Spec = {
  name: "NodePort: every node leads to endpoints of both nodes, for everybody",
  suite: "services",
  run: async (scene) => {
    const { cluster, family } = scene;
    const { caller, by } = await nearAndFar(scene);
    const service = await scene.service("web", { type: "NodePort", selector: { app: "web" }, ports: PORTS });
    for (const node of cluster.nodes) {
      await askEveryone(scene, { to: node.addresses[family] ?? "", port: service.nodePort }, caller, by);
    }
  },
};

const external: Spec = {
  name: "externalIPs and load balancer addresses of every node",
  suite: "services",
  run: async (scene) => {
    const { cluster, family } = scene;
    const { caller, by } = await nearAndFar(scene);
    const gates = cluster.nodes.map((node) => ({
      external: cluster.gateAddress(node, family),
      lb: cluster.gateAddress(node, family),
    }));
    const service = await scene.service("web", {
      type: "LoadBalancer",
      selector: { app: "web" },
      externalIPs: gates.map((gate) => gate.external),
      ports: PORTS,
    });
    await service.setIngress(gates.map(({ lb }) => lb));
    for (const to of gates.flatMap((gate) => [gate.external, gate.lb])) {
      await askEveryone(scene, { to, port: 80 }, caller, by);
    }
  },
};

const hairpin: Spec = {
  name: "hairpin: an endpoint reaches itself through its own service",
  suite: "services",
  run: async (scene) => {
    const [node] = scene.nodes;
    const own = await scene.pod({ node, app: "web" });
    const service = await scene.service("web", { selector: { app: "web" }, ports: PORTS });
    const notSeen = own.addresses[scene.family] ?? "";
    await expectAnswers(own, { to: service.clusterIP, port: 80 }, { by: [own], notSeen });
  },
};

export const reach: readonly Spec[] = [clusterIP, nodePort, external, hairpin];

type Source = { readonly seen: string } | { readonly notSeen: string };

/** What endpoints see of a pod that calls a ClusterIP: its own address, or in some networks anything but that. */
function sourceOf(scene: Scene, caller: Client): Source {
  const { network, family } = scene;
  return network.hidesCallers ? { notSeen: caller.addresses[family] ?? "" } : keptSource(scene, caller);
}

/**
 * What endpoints see of a client whose address is kept, which in userspace mode can be nobody's: the node asks for all.
 */
export function keptSource({ cluster, family }: Scene, caller: Client): Source {
  const own = caller.addresses[family] ?? "";
  return modeNamed(cluster.mode).keepsSource ? { seen: own } : { notSeen: own };
}

const ENDPOINT_PORTS = [{ port: 80 }];

const terminating: Spec = {
  name: "terminating endpoints: passed over while others are ready, used when there is nobody else",
  suite: "services",
  run: async (scene) => {
    const { near: staying, far: going, caller } = await nearAndFar(scene);
    const service = await scene.service("web", { selector: { app: "web" }, ports: ENDPOINT_PORTS });
    const target = { to: service.clusterIP, port: 80 };
    await expectAnswers(caller, target, { by: [staying, going] });
    await going.terminate();
    await expectAnswers(caller, target, { by: [staying] });
    await staying.terminate();
    await expectAnswers(caller, target, { by: [staying, going] });
    await Promise.all([staying.remove(), going.remove()]);
    await expectRefused(caller, target);
  },
};

const zones: Spec = {
  name: "trafficDistribution PreferSameZone: each zone uses its own endpoints, all where it has none",
  suite: "services",
  run: async (scene) => {
    const [, second] = scene.nodes;
    const { near: here, far: there, caller: callerHere } = await nearAndFar(scene);
    const callerThere = await scene.pod({ node: second });
    const spec = { trafficDistribution: "PreferSameZone", selector: { app: "web" }, ports: ENDPOINT_PORTS };
    const service = await scene.service("web", spec);
    const target = { to: service.clusterIP, port: 80 };
    await expectAnswers(callerHere, target, { by: [here] });
    await expectAnswers(callerThere, target, { by: [there] });
    await there.remove();
    await expectAnswers(callerThere, target, { by: [here] });
  },
};

const sameNode: Spec = {
  name: "trafficDistribution PreferSameNode: each node uses its own endpoint",
  suite: "services",
  run: async (scene) => {
    const [, second] = scene.nodes;
    const { near: here, far: there, caller } = await nearAndFar(scene);
    const spec = { trafficDistribution: "PreferSameNode", selector: { app: "web" }, ports: ENDPOINT_PORTS };
    const service = await scene.service("web", spec);
    const target = { to: service.clusterIP, port: 80 };
    await expectAnswers(caller, target, { by: [here] });
    await expectAnswers(second, target, { by: [there] });
    await here.setReady(false);
    await expectAnswers(caller, target, { by: [there] });
  },
};

export const endpoints: readonly Spec[] = [terminating, zones, sameNode];

/** Pods keep their address, everybody else is masqueraded. */
async function askEveryone({ cluster, family }: Scene, target: Target, caller: Pod, by: readonly Pod[]): Promise<void> {
  await expectAnswers(caller, target, { by });
  for (const node of cluster.nodes) await expectAnswers(node, target, { by });
  await expectAnswers(cluster.outside, target, { by, ...masked(cluster, family) });
}

function masked({ outside }: Cluster, family: Scene["family"]) {
  const notSeen = outside.addresses[family];
  return notSeen === undefined ? {} : { notSeen };
}

const DNS_PORTS = [
  { name: "dns", port: 53, targetPort: 53, protocol: "UDP" },
  { name: "dns-tcp", port: 53, targetPort: 80, protocol: "TCP" },
];

const bothProtocols: Spec = {
  name: "UDP and TCP at the same port of one service",
  suite: "services",
  run: async (scene) => {
    const [, second] = scene.nodes;
    const { caller, by } = await nearAndFar(scene, "dns");
    const service = await scene.service("dns", { selector: { app: "dns" }, ports: DNS_PORTS });
    const wanted = { by, ...sourceOf(scene, caller) };
    await expectAnswers(caller, { to: service.clusterIP, port: 53, protocol: "UDP" }, wanted);
    await expectAnswers(caller, { to: service.clusterIP, port: 53 }, wanted);
    await expectAnswers(second, { to: service.clusterIP, port: 53, protocol: "UDP" }, { by });
  },
};

const repointing: Spec = {
  name: "UDP: a busy flow is led to the new endpoint when its own is gone",
  suite: "services",
  about: ["core", "kernel"],
  run: async (scene) => {
    const [first, second] = scene.nodes;
    const [old, caller] = await Promise.all([scene.pod({ node: second, app: "dns" }), scene.pod({ node: first })]);
    const service = await scene.service("dns", { selector: { app: "dns" }, ports: DNS_PORTS });
    const target = { to: service.clusterIP, port: 53, protocol: "UDP" } as const;
    await expectAnswers(caller, target, { by: [old] });
    await flowGoesTo(scene, caller, service.clusterIP, old);
    const next = await scene.pod({ node: first, app: "dns" });
    // The old one still runs: only the proxy can lead the flow away from it.
    await old.setReady(false);
    await flowGoesTo(scene, caller, service.clusterIP, next);
  },
};

const MEBIBYTES = 8;

const large: Spec = {
  name: `${MEBIBYTES} MiB through a ClusterIP and a NodePort, from a pod, a node and the outside`,
  suite: "services",
  run: async (scene) => {
    const { cluster, family } = scene;
    const [first, second] = scene.nodes;
    const [far, caller] = await Promise.all([scene.pod({ node: second, app: "web" }), scene.pod({ node: first })]);
    const service = await scene.service("web", { type: "NodePort", selector: { app: "web" }, ports: [{ port: 80 }] });
    const atNode = { to: first.addresses[family] ?? "", port: service.nodePort };
    const atService = { to: service.clusterIP, port: 80 };
    await expectAnswers(caller, atService, { by: [far] });
    await expectAnswers(cluster.outside, atNode, { by: [far] });
    const ways = [
      [caller, atService],
      [first, atService],
      [cluster.outside, atNode],
    ] as const;
    for (const [from, { to, port }] of ways) await expectBytes(from, { to, port }, MEBIBYTES << 20);
  },
};

const dualStack: Spec = {
  name: "dual stack: one service at an address of each family",
  suite: "services",
  eachFamily: false,
  unfit: ({ families }) => (families.length === 2 ? undefined : "the cluster has one IP family"),
  run: async (scene) => {
    const { caller, by } = await nearAndFar(scene);
    const spec = { ipFamilyPolicy: "RequireDualStack", selector: { app: "web" }, ports: [{ port: 80 }] };
    const { clusterIPs } = await scene.service("web", spec);
    if (clusterIPs.length !== 2) throw new Error(`wanted two ClusterIPs, came ${clusterIPs.join(", ")}`);
    for (const to of clusterIPs) await expectAnswers(caller, { to, port: 80 }, { by });
  },
};

export const protocols: readonly Spec[] = [bothProtocols, repointing, large, dualStack];

/** By provider. */
const BRINGS_DNS: Readonly<Record<string, string>> = {
  netns: "apt-get install dnsmasq-base",
  kind: "its server is CoreDNS, which sig-network's specs ask",
};

/** Longer than any datagram that the server sends: resolvers ask again over TCP. */
const LONG_TEXT = "fairlead ".repeat(200).trim();

const CLUSTER_DNS_PORTS = [
  { name: "dns", port: 53, targetPort: DNS_PORT, protocol: "UDP" },
  { name: "dns-tcp", port: 53, targetPort: DNS_PORT, protocol: "TCP" },
];

const MOST_SHOWN = 200;

export const dns: Spec = {
  name: "DNS: a real server behind a service, over UDP and for long answers TCP; lookups go on when one of two is gone",
  suite: "services",
  unfit: (shape) => needs("dns", BRINGS_DNS[shape.provider])(shape),
  run: async (scene) => {
    const [, second] = scene.nodes;
    const { near, far, caller } = await nearAndFar(scene, "dns");
    const web = await scene.pod({ node: second, app: "web" });
    const { clusterIP } = await scene.service("web", { selector: { app: "web" }, ports: [{ port: 80 }] });
    const name = `web.${scene.namespace}.svc.cluster.local`;
    const type = scene.family === "IPv4" ? "A" : "AAAA";
    const records: readonly DnsRecord[] = [
      { name, type, value: clusterIP },
      { name, type: "TXT", value: LONG_TEXT },
    ];
    await Promise.all([near, far].map((server) => able(server.serveDns)(records)));
    const { clusterIP: server } = await scene.service("dns", { selector: { app: "dns" }, ports: CLUSTER_DNS_PORTS });
    const address = (from: Pod) => able(from.lookUp)(server, { name, type }).then(String, String);
    await scene.until(`${name} at ${clusterIP}`, async () => {
      const came = await address(caller);
      return came === clusterIP ? undefined : came;
    });
    await scene.until(`${LONG_TEXT.length} characters of text`, async () => {
      const text = await able(caller.lookUp)(server, { name, type: "TXT" }).then((pieces) => pieces.join(""), String);
      return text === LONG_TEXT ? undefined : text.slice(0, MOST_SHOWN);
    });
    await expectAnswers(caller, { to: clusterIP, port: 80 }, { by: [web] });
    await near.remove();
    await scene.until("8 lookups answered by the one that is left", async () => {
      const answers = await Promise.all(Array.from({ length: 8 }, () => address(caller)));
      const wrong = answers.filter((came) => came !== clusterIP);
      return wrong.length === 0 ? undefined : wrong.join(", ");
    });
  },
};

/** As kubelet names it to pods, and as a cluster of IPv6 has it. */
const LOCAL_DNS = { IPv4: "169.254.20.10", IPv6: "fd00:53::10" } as const;

/** What its own program makes for each of its addresses (kubernetes/dns, cmd/node-cache/app/cache_app.go). */
const LOCAL_DNS_RULES = `
  for address in $ADDRESSES; do for protocol in tcp udp; do
    $TOOL -w -t raw $HOW PREROUTING -p $protocol -d $address --dport 53 -j NOTRACK
    $TOOL -w -t filter $HOW INPUT -p $protocol -d $address --dport 53 -j ACCEPT
    $TOOL -w -t raw $HOW OUTPUT -p $protocol -s $address --sport 53 -j NOTRACK
    $TOOL -w -t filter $HOW OUTPUT -p $protocol -s $address --sport 53 -j ACCEPT
    $TOOL -w -t raw $HOW OUTPUT -p $protocol -d $address --dport 53 -j NOTRACK
  done; done
`;

/** A device of any kind, since kernels need not have dummies, and one for each family: both may be asked at once. */
const START_LOCAL_DNS = `
  ip link add $DEVICE type veth peer name $DEVICE-peer
  ip link set $DEVICE up && ip link set $DEVICE-peer up
  for address in $ADDRESSES; do ip address add $address dev $DEVICE $DETECTION; done
  dnsmasq --conf-file=/dev/null --no-resolv --no-hosts --no-poll --user=root --bind-interfaces $LISTEN \
    --pid-file=$PID_FILE --host-record=$RECORD
${LOCAL_DNS_RULES}`;

const END_LOCAL_DNS = `
  ip link delete $DEVICE 2>/dev/null || exit 0
  kill $(cat $PID_FILE)
${LOCAL_DNS_RULES}`;

const ANSWERS = {
  IPv4: { cluster: "192.0.2.1", node: "192.0.2.2" },
  IPv6: { cluster: "2001:db8::1", node: "2001:db8::2" },
} as const;

export const localDns: Spec = {
  name: "DNS: node-local DNS answers its node's pods, at the Service's address as well; the Service does where it is not",
  suite: "services",
  unfit: (shape) =>
    needs("dns", BRINGS_DNS[shape.provider])(shape) ??
    (shape.provider === "netns" ? undefined : "its device and its rules are made on a node's namespace"),
  run: async (scene) => {
    const { family, nodes, cluster } = scene;
    const [first, second] = nodes;
    const [server, caller, other, web] = await Promise.all([
      scene.pod({ node: second, app: "dns" }),
      scene.pod({ node: first }),
      scene.pod({ node: second }),
      scene.pod({ node: second, app: "web" }),
    ]);
    const name = "name.test";
    const type = family === "IPv4" ? "A" : "AAAA";
    const { cluster: clusters, node: nodesOwn } = ANSWERS[family];
    await able(server.serveDns)([{ name, type, value: clusters }]);
    const { clusterIP } = await scene.service("dns", { selector: { app: "dns" }, ports: CLUSTER_DNS_PORTS });
    const served = await scene.service("web", { selector: { app: "web" }, ports: [{ port: 80 }] });
    const answers = (from: Pod, to: string, wanted: string) =>
      scene.until(`${wanted} from ${to} for ${from.name}`, async () => {
        const came = await able(from.lookUp)(to, { name, type }).then(String, String);
        return came === wanted ? undefined : came;
      });
    await answers(caller, clusterIP, clusters);
    // Where the Service's address is on a device of the proxy, upstream leaves it out, too.
    const own = modeNamed(cluster.mode).ownsAddresses ? [LOCAL_DNS[family]] : [LOCAL_DNS[family], clusterIP];
    const environment = [
      `ADDRESSES=${own.join(" ")}`,
      // By address: packets of IPv6 count for the device by which they come.
      `LISTEN=${own.map((address) => `--listen-address=${address}`).join(" ")}`,
      `TOOL=${PLAIN_TOOL[family]}`,
      `DEVICE=local-${family.toLowerCase()}`,
      `DETECTION=${family === "IPv6" ? "nodad" : ""}`,
      `PID_FILE=/tmp/fairlead-e2e-${process.pid}-${scene.namespace}.dns`,
      `RECORD=${name},${nodesOwn}`,
    ];
    const run = (script: string, how: "-I" | "-D") =>
      first.run(["env", ...environment, `HOW=${how}`, "sh", "-ec", script]);
    const end = async () => void (await run(END_LOCAL_DNS, "-D"));
    scene.later(end);
    await run(START_LOCAL_DNS, "-I");
    for (const to of own) await answers(caller, to, nodesOwn);
    await answers(other, clusterIP, clusters);
    await expectAnswers(caller, { to: served.clusterIP, port: 80 }, { by: [web] });
    await end();
    await answers(caller, clusterIP, clusters);
  },
};

/** Datagrams from one port are one flow to connection tracking: it goes where the first of them went. */
function flowGoesTo(scene: Scene, caller: Pod, to: string, wanted: Pod): Promise<void> {
  const probe = { protocol: "UDP", to, port: 53, sourcePort: 5353, count: 1, parallel: 1, timeoutMs: 500 } as const;
  return scene.until(`the flow at ${wanted.name}`, async () => {
    const [result] = await caller.send(probe);
    const came = result?.kind === "answer" ? result.server : (result?.kind ?? "nothing");
    return came === wanted.name ? undefined : came;
  });
}
