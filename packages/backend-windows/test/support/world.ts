import type { Backend, PlannerOptions } from "@fairlead/core";
import { FakeHcn } from "@fairlead/kernel/fake";
import { createHcn, type HcnLoadBalancer } from "@fairlead/kernel/hcn";
import { describeHcn } from "@fairlead/testkit/hcn";
import { type SlotChanges, World } from "@fairlead/testkit/histories";
import { WINDOWS_CASES, type WindowsCase } from "@fairlead/testkit/windows";
import { createWindowsBackend } from "../../src/index.ts";
import { PLANNER } from "./played.ts";

const NETWORK = "0e000000-0000-4000-8000-0000000000aa";
const OTHER_NETWORK = "0e000000-0000-4000-8000-0000000000bb";

const WORLD: PlannerOptions = {
  ...PLANNER,
  nodeName: "node-a",
  families: ["IPv4"],
  nodeIPs: { IPv4: "10.201.0.10" },
};

export function caseOf(name: string): WindowsCase {
  const found = WINDOWS_CASES.find((one) => one.name === name);
  if (found === undefined) throw new Error(`there is no case ${name}`);
  return found;
}

/** HCN of a node whose pods are those of the histories' slots. */
export function slotsHcn(version = { Major: 15, Minor: 5 }): FakeHcn {
  const addresses = [1, 2, 3, 4, 5].flatMap((slot) => [0, 1].map((index) => `10.144.0.${slot * 4 + index}`));
  return new FakeHcn({
    version,
    networks: [
      { ID: NETWORK, Name: "cbr0", Type: "L2Bridge" },
      { ID: OTHER_NETWORK, Name: "other", Type: "L2Bridge" },
    ],
    endpoints: [
      ...addresses.map((IpAddress, index) => ({
        ID: `e0000000-0000-4000-8000-0000000001${String(index).padStart(2, "0")}`,
        HostComputeNetwork: NETWORK,
        IpConfigurations: [{ IpAddress }],
        MacAddress: "00-15-5d-00-01-01",
      })),
      // Another program's: its MAC address is not one that a service proxy makes.
      endpoint("e1", NETWORK, "10.144.200.1", "00-15-5d-00-02-01"),
      endpoint("e2", OTHER_NETWORK, "10.150.0.1", "02-11-0a-96-00-01"),
    ],
    loadBalancers: OTHERS,
  });
}

function endpoint(last: string, network: string, address: string, MacAddress: string) {
  const ID = `e0000000-0000-4000-8000-0000000000${last}`;
  return { ID, HostComputeNetwork: network, IpConfigurations: [{ IpAddress: address }], MacAddress, Flags: 1 };
}

/** Load balancers of other programs: none of them may change. */
export const OTHERS: readonly HcnLoadBalancer[] = [
  other("01", ["192.168.0.1"], 80, "e1"),
  // Marked as service proxies mark external addresses, but it leads to another network.
  { ...other("02", ["198.51.100.200"], 80, "e2"), PortMappings: [mapping(80, 16)] },
  { ...other("03", [], 30_500, "e2"), PortMappings: [mapping(30_500, 18)] },
  // At a ClusterIP of another network, which serves it itself.
  other("04", ["10.96.200.1"], 80, "e2"),
  { ID: "1b000000-0000-4000-8000-0000000000f5", FrontendVIPs: ["192.168.0.2"], PortMappings: [] },
];

function other(last: string, FrontendVIPs: readonly string[], port: number, to: string): HcnLoadBalancer {
  return {
    ID: `1b000000-0000-4000-8000-0000000000f${last.at(-1)}`,
    HostComputeEndpoints: [`e0000000-0000-4000-8000-0000000000${to}`],
    FrontendVIPs,
    PortMappings: [mapping(port, 0)],
  };
}

function mapping(port: number, Flags: number) {
  return { Protocol: 6, InternalPort: 8080, ExternalPort: port, Flags };
}

export class SlotsNode {
  readonly world = new World(WORLD);
  readonly hcn: FakeHcn;
  readonly backend: Backend;

  constructor(hcn = slotsHcn()) {
    this.hcn = hcn;
    this.backend = createWindowsBackend(createHcn(hcn), { networkName: "cbr0", enableDSR: true });
  }

  async change(steps: SlotChanges): Promise<void> {
    const change = this.world.change(steps);
    if (change !== undefined) await this.backend.apply(this.world.plan, change);
  }

  /** What the agent does after a failure, and with each of its checks. */
  async repair(): Promise<void> {
    for (let time = 0; time < 3; time += 1) {
      const { refused = [] } = await this.backend.sync(this.world.plan);
      if (refused.length === 0) return;
    }
  }

  get state(): readonly string[] {
    const { Endpoint, LoadBalancer } = this.hcn.objects;
    return describeHcn({ endpoints: Endpoint.values(), loadBalancers: LoadBalancer.values() });
  }

  /** What a new process makes of the same plan on an untouched node. */
  async fresh(): Promise<readonly string[]> {
    const other = new SlotsNode(slotsHcn(this.hcn.version));
    other.world.change(this.world.slots);
    await other.backend.sync(other.world.plan);
    return other.state;
  }

  /** Load balancers of other programs as they are now. */
  get others(): readonly unknown[] {
    return OTHERS.map(({ ID }) => this.hcn.objects.LoadBalancer.get(ID));
  }
}
