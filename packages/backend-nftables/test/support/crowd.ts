import { VirtualClock } from "@fairlead/base/testing";
import { FakeNftables } from "@fairlead/kernel/fake";
import { addressHex, type Hex, type NftSet, type NftTable, type SetElement } from "@fairlead/netfilter/nft";
import { goldenNode, nodeEnvironment } from "@fairlead/testkit";
import { type CrowdKernel, type CrowdNode, servedCrowd } from "@fairlead/testkit/crowds";
import { createNftablesBackend } from "../../src/index.ts";
import { kubeProxyAffinitySet } from "../../src/plan/context.ts";
import { plannerOptions } from "./golden.ts";

const NODE = goldenNode(false);
const NODE_ADDRESS = NODE.addresses[0] ?? "";

/** Nftables mode on a fake; kube-proxy's part is what it leaves in the kernel. */
export function nftablesCrowd(random: () => number): CrowdNode {
  const clock = new VirtualClock();
  const kernel = new FakeNftables({ clock });
  const backendAnew = () => createNftablesBackend(kernel, { family: "IPv4", clock });
  const served = servedCrowd(backendAnew, new Memories(kernel, clock), random);
  return {
    options: plannerOptions(NODE),
    clock,
    nodeAddress: NODE_ADDRESS,
    sharesFrontends: true,
    ...served,
    afterKubeProxy: (plan, clients) => {
      const [group] = plan.groups.values();
      const theirs = new Map<string, NftSet>();
      for (const endpoint of group?.cluster ?? []) {
        const name = kubeProxyAffinitySet(group?.name ?? "", "TCP", endpoint);
        const own = [...clients].filter(([, one]) => one === `${endpoint.address}:${endpoint.port}`);
        const keys = own.map(([client]) => addressHex(client));
        theirs.set(name, affinitySet(name, keys, 1000 * (group?.affinitySeconds ?? 0)));
      }
      const table = tableOf(kernel);
      kernel.put({ ...table, sets: new Map([...table.sets, ...theirs]) });
      return served.restart(plan);
    },
  };
}

function tableOf(kernel: FakeNftables): NftTable {
  const found = kernel.tableNow("ip", "kube-proxy");
  if (found === undefined) throw new Error("there is no table kube-proxy");
  return found;
}

function affinitySet(name: string, clients: readonly Hex[], timeout: number): NftSet {
  const elements = clients.map((key): [Hex, SetElement] => [key, { key, expires: timeout - 1000 }]);
  return { name, key: ["ipv4_addr"], flags: ["dynamic", "timeout"], timeout, elements: new Map(elements) };
}

/** What the table's sets know of clients. A table is read for each change of it, and has what was there before. */
class Memories implements CrowdKernel {
  readonly #kernel: FakeNftables;
  readonly #clock: VirtualClock;
  #version = "";
  #keys = "";
  readonly #left = new Map<string, Outcome["remembered"]>();

  constructor(kernel: FakeNftables, clock: VirtualClock) {
    this.#kernel = kernel;
    this.#clock = clock;
  }

  version(): string {
    return `${this.#kernel.generationNow} ${this.#clock.monotonic()}`;
  }

  rules() {
    return { nftables: [tableOf(this.#kernel)] };
  }

  environment(client: string) {
    return { ...nodeEnvironment, localAddresses: [NODE_ADDRESS], remembered: this.#left.get(client) ?? [] };
  }

  knows(client: string): boolean {
    this.#refresh();
    return this.#left.has(client) || this.#keys.includes(addressHex(client));
  }

  take({ remembered }: Outcome, client: string, sender: string): void {
    const own = remembered.map((one) => ({ ...one, key: one.key.replace(addressHex(sender), addressHex(client)) }));
    this.#left.set(client, [...(this.#left.get(client) ?? []), ...own]);
    for (const { set, key, value, timeout, deleted } of own) {
      if (deleted) this.#kernel.forget("ip", "kube-proxy", set, key);
      else {
        const element = { key, ...(value !== undefined && { value }), ...(timeout !== undefined && { timeout }) };
        this.#kernel.remember("ip", "kube-proxy", set, element);
      }
    }
  }

  #refresh(): void {
    if (this.#version === this.version()) return;
    this.#version = this.version();
    this.#left.clear();
    const filled = [...tableOf(this.#kernel).sets.values()].filter(({ flags }) => flags.includes("dynamic"));
    this.#keys = filled.flatMap(({ elements }) => [...elements.keys()]).join(" ");
  }
}

type Outcome = Parameters<CrowdKernel["take"]>[0];
