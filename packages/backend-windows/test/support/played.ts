import type { Backend, IPFamily, PlannerOptions, SyncReport } from "@fairlead/core";
import { FakeHcn } from "@fairlead/kernel/fake";
import { createHcn } from "@fairlead/kernel/hcn";
import { type RawObject, TestCluster } from "@fairlead/testkit";
import { describeHcn, hcnOf } from "@fairlead/testkit/hcn";
import { WINDOWS_NODE, type WindowsCase } from "@fairlead/testkit/windows";
import { createWindowsBackend, type WindowsOptions, windowsSemantics } from "../../src/index.ts";

export const PLANNER: PlannerOptions = {
  nodeName: WINDOWS_NODE.name,
  zone: "a",
  families: ["IPv4", "IPv6"],
  nodeIPs: { IPv4: WINDOWS_NODE.address },
  serviceCIDRs: { IPv4: ["10.96.0.0/16"], IPv6: ["fd00:96::/112"] },
  detectors: {},
  nodePortAddresses: {},
  masqueradeAll: false,
  semantics: windowsSemantics,
};

export class WindowsNode {
  readonly hcn: FakeHcn;
  readonly cluster: TestCluster;
  readonly problems: string[] = [];
  readonly #make: () => ReadonlyMap<IPFamily, Backend>;
  #backends: ReadonlyMap<IPFamily, Backend>;

  constructor(of: WindowsCase, { planner = {}, options = {}, hcn }: NodeOptions = {}) {
    this.hcn = hcn ?? new FakeHcn({ version: of.hns, ...hcnOf(of), loadBalancers: of.others });
    for (const { call, code, times } of of.fails) this.hcn.fail(call, code, times);
    this.cluster = new TestCluster({ ...PLANNER, families: of.families, ...planner });
    const { address, mac, sourceVip, healthzPort } = WINDOWS_NODE;
    const port = createHcn(this.hcn);
    const { enableDSR, forwardHealthCheckVip } = of;
    const networkName = of.network === "Overlay" ? "vxlan0" : "cbr0";
    const nodeAddress = async () => ({ address, mac });
    const onProblem = (problem: string) => void this.problems.push(problem);
    const common = { networkName, sourceVip, enableDSR, forwardHealthCheckVip, healthzPort, nodeAddress, onProblem };
    this.#make = () =>
      new Map(of.families.map((family) => [family, createWindowsBackend(port, { ...common, family, ...options })]));
    this.#backends = this.#make();
  }

  /** Another process comes, which finds what HCN has. */
  restart(): void {
    this.#backends = this.#make();
  }

  put(...objects: readonly RawObject[]): void {
    this.cluster.put(...objects);
  }

  /** As the agent does it: each family is given what changed, after its first sync. */
  async sync(kind: "full" | "partial" = "partial"): Promise<readonly SyncReport[]> {
    const { changes } = this.cluster.replan();
    const reports: SyncReport[] = [];
    for (const [family, backend] of this.#backends) {
      const plan = this.cluster.plan(family);
      const change = changes.get(family);
      if (kind === "full") reports.push(await backend.sync(plan));
      else if (change !== undefined) reports.push(await backend.apply(plan, change));
    }
    return reports;
  }

  /** As the agent does it: after a sync that failed the next one is full, and its check repairs what HCN refused. */
  async settle(kind: "full" | "partial"): Promise<void> {
    await this.sync(kind).catch(() => this.sync("full"));
    await this.check().catch(() => this.sync("full"));
  }

  async check(): Promise<readonly string[]> {
    const found: string[] = [];
    for (const [family, backend] of this.#backends) {
      const plan = this.cluster.plan(family);
      const difference = await backend.difference(plan);
      if (difference === undefined) continue;
      found.push(...difference.what);
      await backend.sync(plan);
    }
    return found;
  }

  get state(): readonly string[] {
    const { Endpoint, LoadBalancer } = this.hcn.objects;
    return describeHcn({ endpoints: Endpoint.values(), loadBalancers: LoadBalancer.values() });
  }
}

interface NodeOptions {
  readonly planner?: Partial<PlannerOptions>;
  readonly options?: Partial<WindowsOptions>;
  /** Default: as the case has it. */
  readonly hcn?: FakeHcn;
}

/** What kube-proxy has and Fairlead has not (`-`), and the other way around (`+`). */
export function differing(theirs: readonly string[], ours: readonly string[]): readonly string[] {
  const [left, right] = [new Set(theirs), new Set(ours)];
  return [
    ...[...left].filter((line) => !right.has(line)).map((line) => `- ${line}`),
    ...[...right].filter((line) => !left.has(line)).map((line) => `+ ${line}`),
  ];
}
