import type { KernelVersion } from "@fairlead/lab/qemu/kernel";
import { endpointSlice, goldenScenario, type RawObject, service } from "@fairlead/testkit";
import {
  ALL_UNITS,
  ask,
  CHANGE,
  COUNTED,
  clusterOf,
  count,
  DEVICES,
  type GuestCounts,
  inNode,
  NODE,
  networkLines,
  OTHER_MODES_UNITS,
  printedNumber,
  type Size,
  SUBJECTS,
  type Subject,
  type Unit,
  type Way,
} from "./measure.ts";
import {
  type FastPath,
  fairleadChange,
  fairleadIptables,
  fairleadIpvs,
  fairleadTable,
  IPTABLES_GUEST,
  IPVS_GUEST,
  iptablesTables,
  kubeProxyTable,
  recordKubeProxy,
} from "./subjects.ts";

export interface Guest {
  readonly name: string;
  /** @param kubeProxy the real one's program */
  count(version: KernelVersion, kubeProxy: string): Promise<{ readonly release: string; readonly counts: GuestCounts }>;
}

/** Up to a thousand services have ten endpoints each. More take an emulated machine too long. */
function sizeOf(services: number): Size {
  return { services, endpoints: services > 1_000 ? 1 : 10 };
}

/** Sizes at which packets are counted. */
const SIZES = [10, 1_000, 10_000] as const;
/** Those at which a change is. */
export const CHANGE_SIZES = [...SIZES, 44_000] as const;
/** The same in iptables and ipvs mode. */
const OLDER_SIZES = [10, 1_000] as const;
/** Of the ways between nodes, and of what does not depend on it. */
export const ONE_SIZE = 1_000;
export const WAYS = ["routed", "vxlan"] as const satisfies readonly Way[];

/** Where packets are sent to a pod's own address, which no service has. */
export const DIRECT_GUEST = `direct ${ONE_SIZE}`;
export const GUESTS: readonly Guest[] = [
  ...SIZES.map((services) => nftables("one node", services)),
  ...WAYS.map((way) => nftables(way, ONE_SIZE)),
  { name: DIRECT_GUEST, count: direct },
  ...CHANGE_SIZES.map((services) => ({
    name: `change ${services}`,
    count: (version: KernelVersion) => countChange(version, sizeOf(services)),
  })),
  ...OLDER_SIZES.map(iptables),
  ...OLDER_SIZES.map(ipvs),
];

const MEMORY_MIB = 3_072;

function nftables(way: Way, services: number): Guest {
  return {
    name: `${way} ${services}`,
    async count(version, kubeProxy) {
      const devices = DEVICES[way];
      const subjects = [
        ...(await nftablesSubjects(kubeProxy, way, services)),
        await fairleadTable(SUBJECTS.excepted, "excepted", clusterOf(sizeOf(services), EXCEPTED), devices),
      ];
      const guest = { memoryMiB: MEMORY_MIB };
      return count({ version, way, service: COUNTED, subjects, units: ALL_UNITS, guest });
    },
  };
}

async function nftablesSubjects(kubeProxy: string, way: Way, services: number): Promise<readonly Subject[]> {
  const objects = clusterOf(sizeOf(services));
  return [
    kubeProxyTable(SUBJECTS.base, await recorded(kubeProxy, "nftables", services, objects)),
    await fairleadTable(SUBJECTS.own, "own", objects, undefined),
    await fairleadTable(SUBJECTS.fast, "fast", objects, DEVICES[way]),
  ];
}

async function direct(version: KernelVersion, kubeProxy: string) {
  const way = "one node";
  const subjects = await nftablesSubjects(kubeProxy, way, ONE_SIZE);
  const [address = ""] = COUNTED.endpoints;
  const guest = { memoryMiB: MEMORY_MIB };
  return count({ version, way, service: { ...COUNTED, address }, subjects, units: ALL_UNITS, guest });
}

const EXCEPTED = { "fairlead.dev/fast-path": "off" };

function iptables(services: number): Guest {
  return {
    name: `iptables ${services}`,
    async count(version, kubeProxy) {
      const objects = clusterOf(sizeOf(services));
      const text = await recorded(kubeProxy, "iptables", services, objects);
      const subjects = [
        iptablesTables(SUBJECTS.base, "kube-proxy", text),
        await fairleadIptables(SUBJECTS.own, objects),
      ];
      const guest = { memoryMiB: MEMORY_MIB, ...IPTABLES_GUEST };
      return count({ version, way: "one node", service: COUNTED, subjects, units: OTHER_MODES_UNITS, guest });
    },
  };
}

/** Where this machine's kernel has no IPVS, kube-proxy cannot be recorded: golden files say that it leaves the same. */
function ipvs(services: number): Guest {
  return {
    name: `ipvs ${services}`,
    async count(version) {
      const subjects = [await fairleadIpvs(SUBJECTS.own, clusterOf(sizeOf(services)))];
      const guest = { memoryMiB: MEMORY_MIB, ...IPVS_GUEST };
      return count({ version, way: "one node", service: COUNTED, subjects, units: OTHER_MODES_UNITS, guest });
    },
  };
}

const recordings = new Map<string, Promise<string>>();

/** Each size is recorded once. */
function recorded(
  kubeProxy: string,
  mode: "iptables" | "nftables",
  services: number,
  objects: readonly RawObject[],
): Promise<string> {
  const key = `${mode} ${services}`;
  const found = recordings.get(key) ?? recordKubeProxy(kubeProxy, mode, objects);
  recordings.set(key, found);
  return found;
}

/** Transactions of changes that are sent, there and back. */
const TIMES = 400;

/** Instructions of one change of an endpoint, of the sender and the kernel's threads, without and with the option. */
async function countChange(version: KernelVersion, size: Size) {
  const way = "one node";
  const objects = clusterOf(size);
  const of = (file: string, fastPath: FastPath) => fairleadChange(file, file, objects, fastPath);
  const subjects = [await of("without", undefined), await of("fast-path", DEVICES[way])];
  const script = [
    "count seed",
    ...networkLines(way, COUNTED.endpoints),
    ...subjects.flatMap(({ name, load }) => [
      inNode("nft flush ruleset"),
      ...load,
      `echo "${name} $(batch change ${NODE} ${TIMES} /guest/${name}-there /guest/${name}-back)"`,
    ]),
  ].join("\n");
  const files = Object.assign({}, ...subjects.map((subject) => subject.files));
  const { release, text } = await ask(version, { files, script, memoryMiB: MEMORY_MIB });
  const counted = (name: string) => ({ [CHANGE]: printedNumber(text, name) });
  const counts: GuestCounts = { [SUBJECTS.own]: counted("without"), [SUBJECTS.fast]: counted("fast-path") };
  return { release, counts };
}

/** A recording of kube-proxy with one service for TCP and UDP, and what Fairlead makes of the same objects. */
const SCENARIO = "02-dns-tcp-udp";
const SERVICE = { address: "10.96.0.10", port: 53, endpoints: ["10.144.1.5", "172.30.23.2"] };

/** Counts in one guest, with what the repository has: kube-proxy itself is not needed. */
export async function countFew(version: KernelVersion, units: readonly Unit[]): Promise<GuestCounts> {
  const { node, objects, nft } = goldenScenario(SCENARIO);
  const way = "one node";
  const subjects = [
    kubeProxyTable(SUBJECTS.base, nft),
    await fairleadTable(SUBJECTS.fast, "fast-path", objects, DEVICES[way], node),
  ];
  return (await count({ version, way, service: SERVICE, subjects, units })).counts;
}

/** A load balancer's address, which is what a Gateway has: its endpoints weigh alike, or in two shares. */
const SHARED = { ...COUNTED, address: "192.0.2.10" };
export const WEIGHTED_SUBJECTS = { alike: "alike", weighted: "weighted" } as const;
const WEIGHTED_GUESTS = {
  iptables: {
    guest: IPTABLES_GUEST,
    rules: (name: string, objects: readonly RawObject[]) => fairleadIptables(name, objects, name),
  },
  nftables: {
    guest: {},
    rules: (name: string, objects: readonly RawObject[]) => fairleadTable(name, name, objects, undefined),
  },
};

/** Counts in one guest what packets to endpoints with weights cost, and to the same without. */
export async function countWeighted(
  version: KernelVersion,
  mode: keyof typeof WEIGHTED_GUESTS,
  units: readonly Unit[],
): Promise<GuestCounts> {
  const { guest, rules } = WEIGHTED_GUESTS[mode];
  const { alike, weighted } = WEIGHTED_SUBJECTS;
  const subjects = [await rules(alike, sharedObjects()), await rules(weighted, sharedObjects([9, 1]))];
  return (await count({ version, way: "one node", service: SHARED, subjects, units, guest })).counts;
}

function sharedObjects(weights?: readonly [number, number]): readonly RawObject[] {
  const { address, port, endpoints } = SHARED;
  const ports = (["TCP", "UDP"] as const).map((protocol) => ({ name: protocol.toLowerCase(), port, protocol }));
  const half = endpoints.length / 2;
  const slices = [endpoints.slice(0, half), endpoints.slice(half)].map((addresses, at) =>
    endpointSlice(`shared-${at}`, {
      service: "shared",
      family: "IPv4",
      ports,
      endpoints: addresses.map((one) => ({ address: one, nodeName: "node-b" })),
      ...(weights && { annotations: { "fairlead.dev/weight": String(weights[at]) } }),
    }),
  );
  const shared = service("shared", {
    type: "LoadBalancer",
    clusterIPs: ["10.96.0.11"],
    ports,
    ingress: [{ ip: address }],
  });
  return [...clusterOf(sizeOf(10)), shared, ...slices];
}
