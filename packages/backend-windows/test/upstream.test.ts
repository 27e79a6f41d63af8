/**
 * Unit tests of pkg/proxy/winkernel (v1.37.2): their objects, and what their writes left in HCN. Not here: hns_test.go
 * (skipped by upstream, or calls of helpers) and, of proxier_test.go, TestNoopEndpointSlice, TestClassifyLBError,
 * TestFindRemoteSubnetProviderAddress, TestLoadBalancerTypeConstants, TestLBErrorTypeConstants and
 * TestLBMetricEmission, none of which goes through syncProxyRules, and TestEndpointSlice, whose Service has port 0,
 * which no API server stores.
 */

import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { IPFamily } from "@fairlead/core";
import { FakeHcn } from "@fairlead/kernel/fake";
import type { HcnEndpoint } from "@fairlead/kernel/hcn";
import { type EndpointFields, endpointSlice, type RawObject, type ServiceFields, service } from "@fairlead/testkit";
import type { WindowsCase } from "@fairlead/testkit/windows";
import { describe, expect, test } from "vitest";
import { DIFFERENCES } from "./support/differences.ts";
import { differing, WindowsNode } from "./support/played.ts";

const LEFT: Readonly<Record<string, readonly string[]>> = JSON.parse(
  readFileSync(join(import.meta.dirname, "fixtures/upstream-unit-tests.json"), "utf8"),
);

interface Row {
  /** The function of upstream. */
  readonly test: string;
  readonly of?: Partial<WindowsCase>;
  readonly steps: readonly Step[];
  /** The meant differences that show, by their names, and the lines that differ for each. */
  readonly but?: Readonly<Record<string, RegExp>>;
}

interface Step {
  /** Endpoints that the network plugin makes before it. */
  readonly pods?: readonly HcnEndpoint[];
  readonly put?: readonly RawObject[];
  readonly delete?: readonly RawObject[];
}

const NODE = "test-node";
const NETWORK = "123abc";
const MAC = "00-11-22-33-44-55";
const ADDRESS = "10.0.0.1";

const REMOTE: EndpointFields = { address: "192.168.2.3" };
const PROVIDER: EndpointFields = { address: "10.0.0.3" };
const HERE: EndpointFields = { address: "192.168.4.4", nodeName: NODE };

const pod = (ID: string, MacAddress: string, ...addresses: readonly string[]): HcnEndpoint => ({
  ID: ID.toLowerCase(),
  Name: ID,
  HostComputeNetwork: NETWORK,
  IpConfigurations: addresses.map((IpAddress) => ({ IpAddress, PrefixLength: 24 })),
  MacAddress,
});
const GATEWAY = pod("EP-GW", "00-11-22-33-44-66", "192.168.2.1", "192::1");
const POD = pod("EP-LOCAL-1", "00-11-22-33-44-56", "192.168.4.4");

type Ports = readonly { readonly name: string; readonly port: number }[];
type Fields = Partial<ServiceFields> & { readonly slicePorts?: Ports; readonly nodePort?: number };

const P80: Ports = [{ name: "p80", port: 80 }];

/** svc1, svc2 and so on, and their endpoints; `undefined`: they have no EndpointSlice. */
function svc(number: number, endpoints: readonly EndpointFields[] | undefined, fields: Fields = {}): RawObject[] {
  const { slicePorts, nodePort, ...rest } = fields;
  const name = `svc${number}`;
  const ports = [{ name: "p80", port: 80, ...(nodePort !== undefined && { nodePort }) }];
  return [
    service(name, { clusterIPs: [`10.20.30.4${number}`], ports, ...rest }),
    ...(endpoints === undefined ? [] : [slice(number, endpoints, slicePorts)]),
  ];
}

function slice(
  number: number,
  endpoints: readonly EndpointFields[],
  ports = P80,
  family: IPFamily = "IPv4",
): RawObject {
  return endpointSlice(`svc${number}-${family.toLowerCase()}`, { service: `svc${number}`, family, ports, endpoints });
}

const nodePort = (number: number, endpoints?: readonly EndpointFields[], fields: Fields = {}): RawObject[] =>
  svc(number, endpoints, { type: "NodePort", nodePort: 3000 + number, ...fields });

/** svc1 of both families, at an address of a load balancer: what upstream's proxier for IPv4 left of it. */
function dualStack(test: string, externalTrafficPolicy: "Local" | "Cluster"): Row {
  const elsewhere = (address: string) => (externalTrafficPolicy === "Cluster" ? [{ address }] : []);
  const put = [
    ...svc(1, undefined, {
      type: "LoadBalancer",
      clusterIPs: ["10.20.30.41", "fd00::21"],
      externalTrafficPolicy,
      nodePort: 3001,
      ingress: [{ ip: "11.21.31.41" }, { ip: "fd00::1" }],
    }),
    slice(1, [{ address: "192.168.5.3", nodeName: NODE }, ...elsewhere("192.168.2.3")]),
    slice(1, [{ address: "192::5:3", nodeName: NODE }, ...elsewhere("192::2:3")], P80, "IPv6"),
  ];
  return {
    test,
    of: { ...OVERLAY, enableDSR: externalTrafficPolicy === "Local" },
    steps: [{ pods: [pod("EP-LOCAL-1", MAC, "192.168.5.3", "192::5:3"), GATEWAY], put }],
    but: { [NO_SIX]: /^- (?:endpoint (?:192|fd00)::|balancer (?:fd00::|\* 3001\/6 .* flags [23] ))/ },
  };
}

const DSR = { enableDSR: true } as const;
const OVERLAY = { network: "Overlay" } as const;
const BOTH = { ...DSR, ...OVERLAY } as const;
/** Upstream's test passes over what its program checks: supported.go:94. */
const NO_SIX = "An overlay network has one family, and Windows no IPv6 there";
const UPDATED: readonly Step[] = [{ put: nodePort(1, [REMOTE]) }, { put: [slice(1, [PROVIDER])] }];
const INGRESS = { externalTrafficPolicy: "Local", ingress: [{ ip: "11.21.31.41" }] } as const;
const AT_172 = { clusterIPs: ["172.20.1.1"] } as const;
const THERE: EndpointFields = { ...REMOTE, nodeName: "testhost2" };
const ALL = [HERE, ...["192.168.2.3", "192.168.2.4", "192.168.2.5"].map((address) => ({ address }))];

const EXISTING = {
  ID: "lbid-2",
  HostComputeEndpoints: ["ep-local-2"],
  FrontendVIPs: ["10.20.30.41"],
  PortMappings: [{ Protocol: 6, InternalPort: 80, ExternalPort: 80 }],
};

const ROWS: readonly Row[] = [
  {
    test: "TestCreateServiceVip",
    of: BOTH,
    steps: [{ put: nodePort(1, undefined, { externalIPs: ["50.60.70.81"], affinitySeconds: 10_800 }) }],
  },
  { test: "TestCreateRemoteEndpointOverlay", of: OVERLAY, steps: [{ put: nodePort(1, [REMOTE]) }] },
  { test: "TestCreateRemoteEndpointL2Bridge", steps: [{ put: nodePort(1, [REMOTE]) }] },
  { test: "TestDsrEndpointsAreCreatedCorrectly", of: BOTH, steps: [{ put: svc(1, [REMOTE]) }] },
  { test: "TestDsrNotAppliedToClusterTrafficPolicy", of: BOTH, steps: [{ put: svc(1, undefined) }] },
  {
    test: "TestClusterIPSvcWithITPLocal",
    of: DSR,
    steps: [
      { pods: [POD], put: svc(1, [{ address: "192.168.4.4" }], { internalTrafficPolicy: "Local" }) },
      {
        pods: [pod("EP-LOCAL-2", "00-11-22-33-44-57", "192.168.4.5")],
        put: [slice(1, [{ address: "192.168.4.4" }, { address: "192.168.4.5" }])],
      },
      { put: [slice(1, [{ address: "192.168.4.4" }, { address: "192.168.4.5" }, REMOTE])] },
    ],
    but: {
      "A pod is this node's where its EndpointSlice says so":
        /^- balancer 10\.20\.30\.41 80\/6 to 192\.168\.4\.4,192\.168\.4\.5 port 80 flags 1 mapping 0$/,
      "Remote endpoints are made only where a load balancer leads to them":
        /^- endpoint 192\.168\.2\.3 flags 1 mac 02-11-c0-a8-02-03$/,
    },
  },
  {
    test: "TestSharedRemoteEndpointDelete",
    of: DSR,
    steps: [{ put: [...nodePort(1, [REMOTE]), ...nodePort(2, [REMOTE])] }, { delete: nodePort(2, [REMOTE]) }],
  },
  {
    test: "TestSharedRemoteEndpointUpdate",
    of: DSR,
    steps: [
      { put: [...nodePort(1, [REMOTE]), ...nodePort(2, [REMOTE])] },
      { put: nodePort(1, [REMOTE], { nodePort: 3003, slicePorts: [...P80, { name: "p443", port: 443 }] }) },
    ],
  },
  { test: "TestCreateLoadBalancerWithoutDSR", of: OVERLAY, steps: [{ put: nodePort(1, [REMOTE]) }] },
  { test: "TestCreateLoadBalancerWithDSR", of: BOTH, steps: [{ put: nodePort(1, [REMOTE]) }] },
  { test: "TestUpdateLoadBalancerWhenSupported", of: { ...BOTH, hns: { Major: 15, Minor: 5 } }, steps: UPDATED },
  { test: "TestUpdateLoadBalancerWhenUnsupported", of: BOTH, steps: UPDATED },
  {
    test: "TestCreateDsrLoadBalancer",
    of: BOTH,
    steps: [
      {
        pods: [pod("EP-LOCAL-1", MAC, "192.168.2.3"), GATEWAY],
        put: nodePort(1, [{ ...REMOTE, nodeName: NODE }], INGRESS),
      },
    ],
  },
  { test: "TestClusterIPLBInCreateDsrLoadBalancer", of: OVERLAY, steps: [{ put: nodePort(1, [THERE], INGRESS) }] },
  {
    test: "TestEndpointSliceWithInternalPortDifferentFromServicePort",
    of: BOTH,
    steps: [{ put: svc(1, [THERE], { ...AT_172, slicePorts: [{ name: "p80", port: 8080 }] }) }],
  },
  {
    test: "TestWinDSRWithOverlayEnabled",
    of: BOTH,
    steps: [{ put: svc(1, undefined, { externalTrafficPolicy: "Local", nodePort: 3001 }) }],
  },
  dualStack("TestETPLocalIngressIPServiceWithPreferDualStack", "Local"),
  dualStack("TestETPLocalIngressIPServiceWithRequireDualStack", "Local"),
  dualStack("TestETPClusterIngressIPServiceWithPreferDualStack", "Cluster"),
  dualStack("TestETPClusterIngressIPServiceWithRequireDualStack", "Cluster"),
  {
    test: "TestRemoteAndLocalEndpointsSameIP",
    steps: [{ pods: [POD], put: [...svc(1, [HERE]), ...svc(2, [{ ...HERE, nodeName: "testhost2" }])] }],
  },
  {
    test: "TestRemoteEndpointDeleteDoesNotAffectLocalEndpointWithSameIP",
    steps: [
      { pods: [POD], put: [...nodePort(1, [HERE, REMOTE]), ...nodePort(2, [HERE, REMOTE])] },
      {
        pods: [pod("EP-LOCAL-2", "00-11-22-33-44-57", "192.168.2.3")],
        put: svc(3, [{ ...REMOTE, nodeName: NODE }]),
      },
      { delete: [slice(1, []), slice(2, [])] },
    ],
  },
  {
    test: "TestEndpointTransitionWithLBFailures",
    of: { fails: [{ call: "HcnDeleteLoadBalancer", code: 0x80004005, times: Number.POSITIVE_INFINITY }] },
    steps: [
      { pods: [POD], put: [...nodePort(1, ALL), ...nodePort(2, ALL)] },
      { put: [slice(1, ALL.slice(0, 2)), slice(2, ALL.slice(0, 2))] },
    ],
  },
  {
    test: "TestCreateServiceWhereFrontEndSameAsExistingLB",
    of: { ...DSR, others: [EXISTING] },
    steps: [{ pods: [POD], put: svc(1, [{ address: "192.168.4.4" }], { type: "LoadBalancer" }) }],
  },
];

const BASE = {
  hns: { Major: 13, Minor: 0 },
  network: "L2Bridge",
  families: ["IPv4"],
  enableDSR: false,
  forwardHealthCheckVip: true,
  fails: [],
  others: [],
  steps: [],
} as const satisfies Omit<WindowsCase, "name">;

/** HCN of upstream's mock: the pods of another node are behind 10.0.0.3. */
function hcnOf({ hns: version, network: Type, others: loadBalancers }: WindowsCase): FakeHcn {
  const Settings = {
    DestinationPrefix: "192.168.2.0/24",
    IsolationId: 4096,
    ProviderAddress: "10.0.0.3",
    DistributedRouterMacAddress: MAC,
  };
  const Policies = [{ Type: "RemoteSubnetRoute", Settings }];
  return new FakeHcn({ version, networks: [{ ID: NETWORK, Name: "TestNetwork", Type, Policies }], loadBalancers });
}

async function leftBy(row: Row): Promise<readonly string[]> {
  const of = { ...BASE, ...row.of, name: row.test };
  const hcn = hcnOf(of);
  const options = {
    networkName: "TestNetwork",
    rootHnsEndpointName: "EP-GW",
    sourceVip: "192.168.1.2",
    healthzPort: 0,
    nodeAddress: async () => ({ address: ADDRESS, mac: MAC }),
  };
  const planner = { nodeName: NODE, nodeIPs: { IPv4: ADDRESS } };
  const node = new WindowsNode(of, { hcn, options, planner });
  for (const step of row.steps) {
    for (const one of step.pods ?? []) hcn.objects.Endpoint.set(one.ID, one);
    node.cluster.remove(...(step.delete ?? []));
    node.put(...(step.put ?? []));
    await node.settle("partial");
  }
  return node.state;
}

describe("as upstream's unit tests left it, but for the named differences", () => {
  test.each(ROWS)("$test", async (row) => {
    const found = differing(LEFT[row.test] ?? [], await leftBy(row));
    const but = Object.entries(row.but ?? {});
    expect(found.filter((line) => !but.some(([, lines]) => lines.test(line)))).toEqual([]);
    const names = [...DIFFERENCES.map(({ name }) => name), NO_SIX];
    for (const [name, lines] of but) {
      expect(names).toContain(name);
      expect(found.some((line) => lines.test(line))).toBe(true);
    }
  });

  test("there is a row for each", () => {
    expect(ROWS.map((row) => row.test)).toEqual(Object.keys(LEFT));
  });
});
