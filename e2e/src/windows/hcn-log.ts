/** The log of the HCN that programs under Wine have: each call, and so what there is at any time. */

import { readFile } from "node:fs/promises";
import type { HcnEndpoint, HcnLoadBalancer } from "@fairlead/kernel/hcn";
import { describeHcn, hcnOf } from "@fairlead/testkit/hcn";
import type { WindowsCase } from "@fairlead/testkit/windows";

interface LoggedCall {
  readonly call: string;
  readonly id?: string;
  readonly settings?: HcnEndpoint & HcnLoadBalancer;
  readonly hr?: string;
}

/** What HCN has after the calls of a log. */
export class HcnState {
  readonly endpoints: Map<string, HcnEndpoint>;
  readonly loadBalancers: Map<string, HcnLoadBalancer>;
  /** All calls, reads too. */
  readonly calls: readonly string[];
  /** Calls that changed what is not the test ground's own. */
  writes = 0;

  constructor(of: WindowsCase, calls: readonly LoggedCall[]) {
    this.endpoints = new Map(hcnOf(of).endpoints.map((one) => [one.ID, one]));
    this.loadBalancers = new Map(of.others.map((one) => [one.ID, one]));
    this.calls = calls.map(({ call }) => call);
    for (const one of calls) if (one.hr === undefined) this.#act(one);
  }

  #act({ call, id = "", settings }: LoggedCall): void {
    const objects: Map<string, unknown> = call.includes("LoadBalancer") ? this.loadBalancers : this.endpoints;
    if (!/^Hcn(?:Create|Modify|Delete)/.test(call)) return;
    if (!isFence(JSON.stringify(settings ?? objects.get(id)))) this.writes += 1;
    if (call.startsWith("HcnDelete")) objects.delete(id);
    else if (settings !== undefined) objects.set(id, { ...settings, ID: id });
  }

  /** As recordings have it, without what is the test ground's own. */
  describe(): readonly string[] {
    return describeHcn({
      endpoints: this.endpoints.values(),
      loadBalancers: this.loadBalancers.values(),
    }).filter((line) => !isFence(line));
  }

  /** The number that the fence's load balancer has now. */
  get fence(): number {
    const balancers = [...this.loadBalancers.values()];
    const fence = balancers.find(({ FrontendVIPs = [] }) =>
      FENCES.some(({ address }) => FrontendVIPs.includes(address)),
    );
    const [{ InternalPort = 0, ExternalPort = -1 } = {}] = fence?.PortMappings ?? [];
    return InternalPort === ExternalPort ? InternalPort : 0;
  }
}

/** A service behind all others: where its port arrives, what was written before it has arrived as well. */
export const FENCE = {
  IPv4: { address: "10.96.255.254", endpoint: "10.244.2.254" },
  IPv6: { address: "fd00:96::fffe", endpoint: "fd00:244:2::fffe" },
} as const;

const FENCES = Object.values(FENCE);

function isFence(text = ""): boolean {
  return FENCES.some(({ address, endpoint }) => text.includes(address) || text.includes(endpoint));
}

export async function readLog(file: string): Promise<readonly LoggedCall[]> {
  const text = await readFile(file, "utf8").catch(() => "");
  // The last line may still be on its way.
  const lines = text.slice(0, text.lastIndexOf("\n") + 1).split("\n");
  return lines.filter((line) => line !== "").map((line): LoggedCall => JSON.parse(line));
}
