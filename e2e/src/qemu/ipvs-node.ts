/** Packets to services of ipvs mode on one node in QEMU: Fairlead's and kube-proxy's. */

import { IP_FAMILIES, type IPFamily } from "@fairlead/base";
import type { KernelVersion } from "@fairlead/lab/qemu/kernel";
import { node } from "@fairlead/testkit";
import { IPVS_GUEST } from "../cost/subjects.ts";
import {
  addressLine,
  type ByFamily,
  configText,
  type Lived,
  livedIn,
  manifestText,
  NODE,
  type NodeGuest,
  namespaceLines,
  type Protocol,
  pairLines,
  printedAfter,
  runInGuest,
  type Served,
  serviceOf,
  slicesOf,
} from "./guest.ts";

/** A node with two uplinks, a client behind each, a client's pod, and pods with a second interface, as lines for sh. */

const CLIENT = "client";
const PODS = "pods";

const UPLINKS = {
  first: {
    device: "up0",
    node: { IPv4: "10.201.0.10", IPv6: "fd00:201::10" },
    router: { IPv4: "10.201.0.1", IPv6: "fd00:201::1" },
    client: { IPv4: "198.51.100.7", IPv6: "fd00:198::7" },
    metric: 100,
  },
  second: {
    device: "up1",
    node: { IPv4: "10.202.0.10", IPv6: "fd00:202::10" },
    router: { IPv4: "10.202.0.1", IPv6: "fd00:202::1" },
    client: { IPv4: "203.0.113.7", IPv6: "fd00:203::7" },
    metric: 2_000,
  },
} as const;
type UplinkName = keyof typeof UPLINKS;

/** Clients outside send these to the node. */
const LOAD_BALANCERS = { IPv4: "192.0.2.0/24", IPv6: "fd00:192::/64" } as const satisfies ByFamily;

/** Of two pods on their first and on their second interface. */
const ENDPOINTS = {
  eth0: { IPv4: ["10.144.1.5", "10.144.1.6"], IPv6: ["fd00:144:1::5", "fd00:144:1::6"] },
  net1: { IPv4: ["192.168.50.5", "192.168.50.6"], IPv6: ["fd00:50::5", "fd00:50::6"] },
} as const;

const ON_NODE = {
  eth0: { IPv4: "10.144.1.1", IPv6: "fd00:144:1::1" },
  net1: { IPv4: "192.168.50.1", IPv6: "fd00:50::1" },
} as const;

const TO_CLIENT = { IPv4: ["10.144.2.1", "10.144.2.2"], IPv6: ["fd00:144:2::1", "fd00:144:2::2"] } as const;

function networkLines(): readonly string[] {
  const names = Object.keys(UPLINKS) as UplinkName[];
  return [
    ...namespaceLines([NODE, CLIENT, PODS, ...names]),
    // A lost connection is given up soon; strict filters would drop what comes by the second uplink.
    ...names.map((name) => `ip netns exec ${name} sysctl -q -w net.ipv4.tcp_syn_retries=1`),
    `ip netns exec ${NODE} sysctl -q -w net.ipv4.conf.all.rp_filter=0 net.ipv4.conf.default.rp_filter=0`,
    ...names.flatMap(uplinkLines),
    ...pairLines("to-client", CLIENT, "eth0"),
    ...IP_FAMILIES.flatMap((family) => {
      const [node, pod] = TO_CLIENT[family];
      return [
        addressLine(NODE, "to-client", node, family),
        addressLine(CLIENT, "eth0", pod, family),
        `ip -n ${CLIENT} route add default via ${node}`,
      ];
    }),
    ...podLines(),
  ];
}

function uplinkLines(name: UplinkName): readonly string[] {
  const { device, node, router, client, metric } = UPLINKS[name];
  return [
    ...pairLines(device, name, "e0"),
    ...IP_FAMILIES.flatMap((family) => {
      const from = `src ${client[family]}`;
      return [
        addressLine(NODE, device, node[family], family),
        `ip -n ${NODE} route add default via ${router[family]} dev ${device} metric ${metric}`,
        addressLine(name, "e0", router[family], family),
        `ip -n ${name} addr add ${client[family]} dev lo`,
        `ip -n ${name} route add ${node[family]} dev e0 ${from}`,
        `ip -n ${name} route add ${LOAD_BALANCERS[family]} via ${node[family]} ${from}`,
      ];
    }),
  ];
}

function podLines(): readonly string[] {
  return [
    ...(["eth0", "net1"] as const).flatMap((device) => [
      ...pairLines(`to-${device}`, PODS, device),
      ...IP_FAMILIES.flatMap((family) => [
        addressLine(NODE, `to-${device}`, ON_NODE[device][family], family),
        ...ENDPOINTS[device][family].map((one) => addressLine(PODS, device, one, family)),
      ]),
    ]),
    ...IP_FAMILIES.map((family) => `ip -n ${PODS} route add default via ${ON_NODE.eth0[family]}`),
  ];
}

/** The service proxy name of the second instance. */
const NAME = "storage";

const PORT = 80;
const at = (target: number): Served["ports"] => ({ tcp: [PORT, target], udp: [PORT, target] });
const TARGETS = { web: 8_080, storage: 8_081 } as const;

const SERVICES = {
  web: {
    clusterIP: { IPv4: "10.96.0.10", IPv6: "fd00:96::10" },
    loadBalancer: { IPv4: "192.0.2.10", IPv6: "fd00:192::10" },
    nodePort: 30_080,
    ports: at(TARGETS.web),
  },
  kept: {
    clusterIP: { IPv4: "10.96.0.11", IPv6: "fd00:96::11" },
    loadBalancer: { IPv4: "192.0.2.11", IPv6: "fd00:192::11" },
    nodePort: 30_081,
    ports: at(TARGETS.web),
    fields: { externalTrafficPolicy: "Local" },
  },
  storage: {
    clusterIP: { IPv4: "10.96.0.12", IPv6: "fd00:96::12" },
    nodePort: 30_082,
    ports: at(TARGETS.storage),
    fields: {
      labels: { "service.kubernetes.io/service-proxy-name": NAME },
      annotations: { "k8s.v1.cni.cncf.io/service-network": NAME },
    },
  },
} as const satisfies Record<string, Served>;
type ServiceName = keyof typeof SERVICES;

const PROTOCOLS = ["tcp", "udp"] as const;

interface Way {
  readonly name: string;
  readonly from: string;
  readonly protocol: Protocol;
  readonly to: string;
  readonly port: number;
}

export function waysOf(uplink: UplinkName): readonly Way[] {
  const { web, kept } = SERVICES;
  const at = (family: IPFamily) => UPLINKS[uplink].node[family];
  return each(uplink, (family) => ({
    "node port": { to: at(family), port: web.nodePort },
    "load balancer": { to: web.loadBalancer[family], port: PORT },
    "load balancer, policy Local": { to: kept.loadBalancer[family], port: PORT },
  }));
}

export const STORAGE_WAYS: readonly Way[] = [
  ...[CLIENT, NODE].flatMap((from) =>
    each(from, (family) => ({ ClusterIP: { to: SERVICES.storage.clusterIP[family], port: PORT } })),
  ),
  ...(["first", "second"] as const).flatMap((uplink) =>
    each(uplink, (family) => ({
      "node port of storage": { to: UPLINKS[uplink].node[family], port: SERVICES.storage.nodePort },
    })),
  ),
];

/** Smaller than all links. */
export const NARROW = 1_300;

const CLEANUP = { first: "--cleanup", named: "$NAMED --cleanup" } as const;

/** One guest, in which proxies come and go. */
export async function packetsOn(version: KernelVersion): Promise<Seen> {
  return new Seen(
    await runInGuest(version, guest(), [
      "first_agent plain",
      ...loadLines("without", [...waysOf("first"), ...waysOf("second")]),
      "end TERM $first",
      "first_agent reply-via",
      ...loadLines("with", [...waysOf("first"), ...waysOf("second")]),
      ...mtuLines(),
      ...loadLines("killed", waysOf("second"), ["end KILL $first", "first_agent reply-via"]),
      "storage both",
      "start_named",
      ...loadLines("named", STORAGE_WAYS),
      ...loadLines(
        "changes",
        [...STORAGE_WAYS, ...waysOf("first")],
        [
          ...["one", "other", "both"].map((state) => `storage ${state}`),
          ...["end KILL $named", "start_named", "end TERM $first", "first_agent reply-via"],
        ],
      ),
      'echo "there $(left .)"',
      ...loadLines("cleaned", waysOf("first"), ["end TERM $named", cleanupLine("named")]),
      'echo "left-named $(left fairlead-storage)"',
      "end TERM $first",
      cleanupLine("first"),
      'echo "left-all $(left .)"',
      ...["plain_names", 'start_kube_proxy "kube-proxy has virtual servers" kube_proxy_serves', "start_named"],
      ...loadLines("kube-proxy", [...STORAGE_WAYS, ...waysOf("first")], ["storage one", "storage both"]),
      ...["end TERM $named", cleanupLine("named"), 'echo "left-alongside $(left fairlead)"'],
    ]),
  );
}

export class Seen {
  readonly #text: string;

  constructor(text: string) {
    this.#text = text;
  }

  lived(phase: string, { name }: Way): Lived {
    return livedIn(this.after(keyOf(phase, name)));
  }

  after(key: string): string {
    return printedAfter(this.#text, key);
  }
}

function each(
  from: string,
  targets: (family: IPFamily) => Readonly<Record<string, Pick<Way, "to" | "port">>>,
): readonly Way[] {
  return IP_FAMILIES.flatMap((family) =>
    PROTOCOLS.flatMap((protocol) =>
      Object.entries(targets(family)).map(([what, target]) => {
        const name = `${protocol} ${family} from ${from} to ${what}`;
        return { name, from, protocol, ...target };
      }),
    ),
  );
}

function keyOf(phase: string, name: string): string {
  return `${phase}-${name.replaceAll(/[ ,]+/g, "-")}`;
}

/** Flows, milliseconds between questions, bytes. */
const LOAD = "9 100 64";

/** Flows of all ways at the same time, while something happens. */
function loadLines(phase: string, ways: readonly Way[], lines: readonly string[] = []): readonly string[] {
  const starts = ways.map(
    ({ name, from, protocol, port, to }) =>
      `start_asking ${keyOf(phase, name)} ${from} ${protocol} ${port} ${to} ${LOAD}`,
  );
  return [...starts, "sleep 1", ...lines, "sleep 1", "stop_asking"];
}

/** The way to the endpoints gets narrow. */
function mtuLines(): readonly string[] {
  return IP_FAMILIES.flatMap((family) => {
    const { loadBalancer } = SERVICES.web;
    const ways = ENDPOINTS.eth0[family].map((pod) => `${pod} dev to-eth0 mtu lock ${NARROW}`);
    return [
      ...ways.map((way) => `ip -n ${NODE} route add ${way}`),
      ...(["first", "second"] as const).map(
        (uplink) => `echo "mtu-${uplink}-${family} $(known_mtu ${uplink} ${PORT} ${loadBalancer[family]})"`,
      ),
      ...ways.map((way) => `ip -n ${NODE} route delete ${way}`),
    ];
  });
}

function cleanupLine(proxy: keyof typeof CLEANUP): string {
  return `(agent ${CLEANUP[proxy]} >> /tmp/${proxy}.log 2>&1)`;
}

/** Pods answer on one interface only. There are configurations `plain` and `reply-via`, and states of `storage`. */
function guest(): NodeGuest {
  const onPods = (protocol: Protocol, port: number, device: keyof typeof ENDPOINTS) => {
    const { IPv4, IPv6 } = ENDPOINTS[device];
    return { namespace: PODS, protocol, port, addresses: [...IPv4, ...IPv6] };
  };
  return {
    modules: IPVS_GUEST.modules ?? [],
    programs: ["ipset", "ipvsadm"],
    network: networkLines(),
    servers: PROTOCOLS.flatMap((protocol) => [
      onPods(protocol, TARGETS.web, "eth0"),
      onPods(protocol, TARGETS.storage, "net1"),
    ]),
    files: {
      objects: objectsText(),
      "storage-both": storageText([0, 1]),
      "storage-one": storageText([0]),
      "storage-other": storageText([1]),
      plain: configText(PROXY),
      "reply-via": configText(PROXY, { replyVia: "auto" }),
    },
    kubeProxy: PROXY,
  };
}

/** All but the second instance's slices. Kubernetes' own controller has written the others, of first interfaces. */
function objectsText(): string {
  const names = Object.keys(SERVICES) as ServiceName[];
  return manifestText([
    node(NODE, { addresses: IP_FAMILIES.map((family) => UPLINKS.first.node[family]) }),
    ...names.map((name) => serviceOf(name, SERVICES[name])),
    ...names.flatMap((name) => slices(name, "eth0", [0, 1])),
  ]);
}

function storageText(pods: readonly number[]): string {
  const label = { "endpointslice.kubernetes.io/managed-by": "networks.fairlead.dev" };
  return manifestText(
    slices("storage", "net1", pods).map((slice) => {
      const { metadata } = slice;
      return { ...slice, metadata: { ...metadata, labels: { ...metadata.labels, ...label } } };
    }),
  );
}

const PROXY = {
  mode: "ipvs",
  clusterCIDR: "10.144.0.0/16,fd00:144::/32",
  ipvs: { minSyncPeriod: "10ms" },
};

function slices(name: ServiceName, device: keyof typeof ENDPOINTS, pods: readonly number[]) {
  const of = (family: IPFamily) => ENDPOINTS[device][family].filter((_, pod) => pods.includes(pod));
  return slicesOf(name, SERVICES[name], of, `-${device}`);
}
