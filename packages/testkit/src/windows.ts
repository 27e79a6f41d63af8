/**
 * Cases of kernelspace mode: objects and their changes, on networks of HCN. kube-proxy was recorded with them, in the
 * words of `describeHcn`, and Fairlead runs them on HCN in memory.
 */

import { familyOf } from "@fairlead/base";
import type { IPFamily } from "@fairlead/core";
import type { HcnBalancerText, HcnMappingText } from "./hcn.ts";
import { type EndpointFields, endpointSlice, type RawObject, type ServiceFields, service } from "./objects.ts";

/** What the node is in all cases. */
export const WINDOWS_NODE = {
  name: "win-1",
  address: "192.0.2.1",
  address6: "2001:db8:2::1",
  mac: "02:00:00:00:02:01",
  sourceVip: "10.244.1.200",
  healthzPort: 10_256,
} as const;

export interface WindowsCase {
  readonly name: string;
  readonly hns: { readonly Major: number; readonly Minor: number };
  readonly network: "L2Bridge" | "Overlay";
  readonly families: readonly IPFamily[];
  readonly enableDSR: boolean;
  readonly forwardHealthCheckVip: boolean;
  /** Calls that HCN refuses: their function, the HRESULT, how often. */
  readonly fails: readonly { readonly call: string; readonly code: number; readonly times: number }[];
  /** Load balancers of other programs, which are there before any service proxy. */
  readonly others: readonly OtherBalancer[];
  /** What happens, beginning with what is there at the start. */
  readonly steps: readonly WindowsStep[];
}

/** A load balancer as HCN has it. */
interface OtherBalancer extends HcnBalancerText {
  readonly ID: string;
  readonly HostComputeEndpoints: readonly string[];
  readonly PortMappings: readonly Required<Pick<HcnMappingText, "Protocol" | "InternalPort" | "ExternalPort">>[];
}

export interface WindowsStep {
  readonly what: string;
  /** The service proxy is killed before, and begins anew with what HCN has. */
  readonly restart?: true;
  readonly put?: readonly RawObject[];
  readonly delete?: readonly RawObject[];
}

const HERE: EndpointFields = { address: "10.244.1.10", nodeName: WINDOWS_NODE.name };
const HERE_TOO: EndpointFields = { address: "10.244.1.11", nodeName: WINDOWS_NODE.name };
const THERE: EndpointFields = { address: "10.244.2.20", nodeName: "win-2" };
const THERE_TOO: EndpointFields = { address: "10.244.2.21", nodeName: "win-2" };
const TERMINATING = { ready: false, serving: true, terminating: true } as const;

const TCP = [{ name: "p", port: 80, targetPort: 8080 }];

function served(name: string, fields: ServiceFields, endpoints: readonly EndpointFields[]): RawObject[] {
  const family = familyOf(fields.clusterIPs[0] ?? "");
  const ports = fields.ports.map((one) => ({
    name: one.name ?? "",
    port: one.targetPort ?? 8080,
    protocol: one.protocol ?? "TCP",
  }));
  return [service(name, fields), endpointSlice(`${name}-1`, { service: name, family, ports, endpoints })];
}

/** The node port's service; external addresses, affinity and health checks follow its policy. */
function nodePort(endpoints: readonly EndpointFields[], affinity = true): RawObject[] {
  const ports = [{ ...TCP[0], port: 80, nodePort: 30_080 }];
  return served(
    "np",
    {
      clusterIPs: ["10.96.0.11"],
      type: "NodePort",
      externalTrafficPolicy: "Local",
      ...(affinity && { affinitySeconds: 10_800 }),
      ports,
    },
    endpoints,
  );
}

function loadBalancer(endpoints: readonly EndpointFields[], fields: Partial<ServiceFields> = {}): RawObject[] {
  return served(
    "lb",
    {
      clusterIPs: ["10.96.0.12"],
      type: "LoadBalancer",
      externalIPs: ["203.0.113.9"],
      ingress: [{ ip: "198.51.100.7" }],
      ports: [{ name: "p", port: 80, targetPort: 8080, nodePort: 30_090 }],
      ...fields,
    },
    endpoints,
  );
}

const web = (endpoints: readonly EndpointFields[]) =>
  served("web", { clusterIPs: ["10.96.0.10"], ports: TCP }, endpoints);

/** One service of each kind. */
const EVERYTHING: readonly RawObject[] = [
  ...web([HERE, THERE]),
  ...nodePort([HERE, THERE]),
  ...loadBalancer([HERE, THERE]),
  ...served("itp", { clusterIPs: ["10.96.0.20"], internalTrafficPolicy: "Local", ports: TCP }, [HERE, THERE]),
  ...served("itp-none", { clusterIPs: ["10.96.0.25"], internalTrafficPolicy: "Local", ports: TCP }, [THERE]),
  ...served(
    "lbl",
    {
      clusterIPs: ["10.96.0.21"],
      type: "LoadBalancer",
      externalTrafficPolicy: "Local",
      healthCheckNodePort: 32_100,
      externalIPs: ["203.0.113.21"],
      ingress: [{ ip: "198.51.100.21" }],
      ports: [{ name: "p", port: 80, targetPort: 8080, nodePort: 30_091 }],
    },
    [HERE, THERE],
  ),
  ...served(
    "dns",
    {
      clusterIPs: ["10.96.0.22"],
      ports: [
        { name: "u", port: 53, targetPort: 5353, protocol: "UDP" },
        { name: "s", port: 54, targetPort: 5454, protocol: "SCTP" },
      ],
    },
    [HERE, THERE],
  ),
  ...served("empty", { clusterIPs: ["10.96.0.23"], ports: TCP }, []),
  ...served("unready", { clusterIPs: ["10.96.0.24"], ports: TCP }, [
    { ...HERE, ready: false },
    { ...THERE_TOO, ready: false },
  ]),
  ...served("hinted", { clusterIPs: ["10.96.0.26"], ports: TCP }, [
    { ...HERE_TOO, zoneHints: ["a"] },
    { ...THERE, zoneHints: ["b"] },
  ]),
  ...served("outside", { clusterIPs: ["10.96.0.27"], ports: TCP }, [{ address: "203.0.113.100" }]),
  ...served("node", { clusterIPs: ["10.96.0.28"], ports: TCP }, [{ address: "192.0.2.2", nodeName: "win-2" }]),
  ...served("vanished", { clusterIPs: ["10.96.0.29"], ports: TCP }, [
    { address: "10.244.1.77", nodeName: WINDOWS_NODE.name },
    THERE,
  ]),
  ...served(
    "dip",
    {
      clusterIPs: ["10.96.0.30"],
      type: "LoadBalancer",
      annotations: { "preserve-destination": "true" },
      ingress: [{ ip: "198.51.100.30" }],
      ports: [{ name: "p", port: 80, targetPort: 8080, nodePort: 30_092 }],
    },
    [HERE, THERE],
  ),
];

/** A service's life, and that of its endpoints. */
const LIFE: readonly WindowsStep[] = [
  { what: "start", put: EVERYTHING },
  { what: "an endpoint more", put: web([HERE, THERE, THERE_TOO]) },
  { what: "it terminates", put: web([HERE, THERE, { ...THERE_TOO, ...TERMINATING }]) },
  { what: "it is gone", put: web([HERE, THERE]) },
  { what: "only the one elsewhere", put: web([THERE]) },
  { what: "none is left", put: web([]) },
  { what: "they are back", put: web([HERE, HERE_TOO]) },
  { what: "no affinity", put: nodePort([HERE, THERE], false) },
  { what: "local endpoints go", put: nodePort([THERE], false) },
  { what: "the node port's service is gone", delete: nodePort([]) },
  { what: "a load balancer's endpoint terminates", put: loadBalancer([HERE, { ...THERE, ...TERMINATING }]) },
  { what: "only the terminating one", put: loadBalancer([{ ...THERE, ...TERMINATING }]) },
  { what: "a load balancer under Local", put: loadBalancer([HERE, THERE], { externalTrafficPolicy: "Local" }) },
  {
    what: "it keeps no endpoint here",
    put: loadBalancer([THERE], { externalTrafficPolicy: "Local" }),
  },
  { what: "its address changes", put: loadBalancer([HERE, THERE], { ingress: [{ ip: "198.51.100.8" }] }) },
  { what: "all are gone", delete: [...EVERYTHING] },
];

const BASE = {
  hns: { Major: 15, Minor: 5 },
  network: "L2Bridge",
  families: ["IPv4"],
  enableDSR: true,
  forwardHealthCheckVip: false,
  fails: [],
  others: [],
  steps: LIFE,
} as const satisfies Omit<WindowsCase, "name">;

const SIX_HERE: EndpointFields = { address: "fd00:244:1::10", nodeName: WINDOWS_NODE.name };
const SIX_THERE: EndpointFields = { address: "fd00:244:2::20", nodeName: "win-2" };

/** Both families, on one network: pods have an address of each. */
const DUAL: readonly RawObject[] = [
  ...web([HERE, THERE]),
  ...served("six", { clusterIPs: ["fd00:96::10"], ports: TCP }, [SIX_HERE, SIX_THERE]),
  ...served(
    "six-np",
    {
      clusterIPs: ["fd00:96::11"],
      type: "LoadBalancer",
      externalTrafficPolicy: "Local",
      affinitySeconds: 600,
      ingress: [{ ip: "2001:db8::7" }],
      ports: [{ name: "p", port: 80, targetPort: 8080, nodePort: 30_096 }],
    },
    [SIX_HERE, SIX_THERE],
  ),
];

/** On a network of IPv6 only, which old versions of Windows take. */
const SIX: readonly WindowsStep[] = [
  { what: "start", put: DUAL.slice(2) },
  {
    what: "only the one elsewhere",
    put: served("six", { clusterIPs: ["fd00:96::10"], ports: TCP }, [SIX_THERE]),
  },
  { what: "all are gone", delete: DUAL.slice(2) },
];

/** What another program has: it leads to this network, and to an address that is no service's. */
const OTHER: OtherBalancer = {
  ID: "1b000000-0000-4000-8000-0000000000f1",
  HostComputeEndpoints: ["e0000000-0000-4000-8000-0000000000b3"],
  FrontendVIPs: ["192.168.0.1"],
  PortMappings: [{ Protocol: 6, InternalPort: 8080, ExternalPort: 80 }],
};

/** Objects change while no service proxy runs. */
const KEPT: readonly WindowsStep[] = [
  { what: "start", put: [...web([HERE, THERE]), ...nodePort([HERE, THERE]), ...loadBalancer([HERE, THERE])] },
  { what: "again, with nothing changed", restart: true },
  {
    what: "again, after changes",
    restart: true,
    put: [...web([HERE, THERE_TOO]), ...loadBalancer([HERE], { ingress: [{ ip: "198.51.100.8" }] })],
    delete: nodePort([]),
  },
];

const ELSEWHERE: EndpointFields = { address: "10.244.2.40", nodeName: "win-2" };
const UNREADY = { ready: false, serving: false, terminating: false } as const;
const INGRESS = { type: "LoadBalancer", ports: [{ name: "p", port: 80, targetPort: 8080, nodePort: 30_095 }] } as const;

/** What Fairlead means otherwise; each step has one service. */
const OTHERWISE: readonly WindowsStep[] = [
  {
    what: "not ready, and published",
    put: served("pub", { clusterIPs: ["10.96.0.40"], ports: TCP }, [{ ...HERE, serving: false }]),
  },
  {
    what: "a load balancer with nothing that serves",
    put: served("off", { clusterIPs: ["10.96.0.41"], ...INGRESS, ingress: [{ ip: "198.51.100.41" }] }, [
      { ...HERE, ...UNREADY },
    ]),
  },
  {
    what: "nothing ready here under Local",
    put: served(
      "here",
      {
        clusterIPs: ["10.96.0.42"],
        externalTrafficPolicy: "Local",
        ...INGRESS,
        ports: [{ name: "p", port: 80, targetPort: 8080, nodePort: 30_097 }],
        ingress: [{ ip: "198.51.100.42" }],
      },
      [{ ...HERE, ...TERMINATING }, THERE],
    ),
  },
  {
    what: "endpoints elsewhere under internal Local",
    put: served("itp", { clusterIPs: ["10.96.0.43"], internalTrafficPolicy: "Local", ports: TCP }, [HERE, ELSEWHERE]),
  },
  { what: "ports that differ", put: differentPorts() },
  {
    what: "a slice that has a pod on another node",
    put: served(
      "moved",
      {
        clusterIPs: ["10.96.0.45"],
        type: "NodePort",
        externalTrafficPolicy: "Local",
        ports: [{ ...INGRESS.ports[0], nodePort: 30_098 }],
      },
      [{ ...HERE_TOO, nodeName: "win-2" }],
    ),
  },
];

/** The balancer of the node port leads to this node, whose endpoint is not the last one. */
function differentPorts(): RawObject[] {
  const fields = { clusterIPs: ["10.96.0.44"], type: "NodePort", externalTrafficPolicy: "Local" } as const;
  const ports = [{ name: "p", port: 80, targetPort: 8080, nodePort: 30_099 }];
  const slice = (number: number, port: number, endpoint: EndpointFields) =>
    endpointSlice(`ports-${number}`, {
      service: "ports",
      family: "IPv4",
      ports: [{ name: "p", port }],
      endpoints: [endpoint],
    });
  return [service("ports", { ...fields, ports }), slice(1, 8080, HERE), slice(2, 9090, THERE)];
}

const PORT_EXISTS = 0x803b0013;
const INVALID_IP = 0x803b001e;
const NOT_IMPLEMENTED = 0x80004001;
const FAILED = 0x80004005;

/** The calls that read, each of which may fail. */
const READS = [
  ["enumerate-networks", "HcnEnumerateNetworks"],
  ["open-network", "HcnOpenNetwork"],
  ["query-network", "HcnQueryNetworkProperties"],
  ["enumerate-endpoints", "HcnEnumerateEndpoints"],
  ["open-endpoint", "HcnOpenEndpoint"],
  ["query-endpoint", "HcnQueryEndpointProperties"],
  ["enumerate-balancers", "HcnEnumerateLoadBalancers"],
  ["open-balancer", "HcnOpenLoadBalancer"],
  ["query-balancer", "HcnQueryLoadBalancerProperties"],
] as const;

/** The first steps, in which each call can be refused once and a later change repairs what it cost. */
const REFUSED: readonly WindowsStep[] = [
  { what: "start", put: [...web([HERE, THERE]), ...nodePort([HERE, THERE])] },
  { what: "an endpoint more", put: web([HERE, THERE, THERE_TOO]) },
  { what: "it is gone", put: web([HERE, THERE]) },
  { what: "the service is gone", delete: web([]) },
];

function refused(name: string, call: string, code: number, hns: WindowsCase["hns"] = BASE.hns): WindowsCase {
  return { ...BASE, name: `refused-${name}`, hns, steps: REFUSED, fails: [{ call, code, times: 1 }] };
}

export const WINDOWS_CASES: readonly WindowsCase[] = [
  { ...BASE, name: "l2bridge" },
  { ...BASE, name: "l2bridge-hns13", hns: { Major: 13, Minor: 0 } },
  { ...BASE, name: "l2bridge-no-dsr", enableDSR: false },
  { ...BASE, name: "l2bridge-forward", forwardHealthCheckVip: true },
  { ...BASE, name: "l2bridge-dual", families: ["IPv4", "IPv6"], steps: [{ what: "start", put: DUAL }] },
  {
    ...BASE,
    name: "l2bridge-dual-forward",
    families: ["IPv4", "IPv6"],
    forwardHealthCheckVip: true,
    steps: [{ what: "start", put: DUAL }],
  },
  { ...BASE, name: "l2bridge-six", hns: { Major: 10, Minor: 4 }, families: ["IPv6"], steps: SIX },
  { ...BASE, name: "l2bridge-old", hns: { Major: 10, Minor: 1 }, enableDSR: false, steps: LIFE.slice(0, 1) },
  { ...BASE, name: "l2bridge-kept", others: [OTHER], steps: KEPT },
  { ...BASE, name: "overlay-kept", network: "Overlay", hns: { Major: 13, Minor: 0 }, steps: KEPT },
  { ...BASE, name: "otherwise", steps: OTHERWISE },
  { ...BASE, name: "overlay", network: "Overlay" },
  { ...BASE, name: "overlay-hns13", network: "Overlay", hns: { Major: 13, Minor: 0 }, enableDSR: false },
  refused("create-endpoint", "HcnCreateEndpoint", INVALID_IP),
  refused("create-balancer", "HcnCreateLoadBalancer", PORT_EXISTS),
  refused("modify", "HcnModifyLoadBalancer", INVALID_IP),
  refused("modify-missing", "HcnModifyLoadBalancer", NOT_IMPLEMENTED),
  refused("delete-balancer", "HcnDeleteLoadBalancer", INVALID_IP),
  refused("delete-balancer-hns13", "HcnDeleteLoadBalancer", INVALID_IP, { Major: 13, Minor: 0 }),
  refused("delete-endpoint", "HcnDeleteEndpoint", INVALID_IP),
  ...READS.map(([name, call]) => refused(name, call, FAILED)),
];

/** How many services the recorded costs are of. */
export const COST_SERVICES = 1_000;

/** So many services with an endpoint here and one elsewhere, and what one more endpoint of the first changes. */
export function costObjects(): { readonly all: readonly RawObject[]; readonly change: readonly RawObject[] } {
  const one = (number: number, endpoints: readonly EndpointFields[]) =>
    served(`s${number}`, { clusterIPs: [`10.96.${number >> 8}.${number & 255}`], ports: TCP }, endpoints);
  const all = Array.from({ length: COST_SERVICES }, (_, at) => one(at + 256, [HERE, THERE])).flat();
  return { all, change: one(256, [HERE, THERE, THERE_TOO]) };
}
