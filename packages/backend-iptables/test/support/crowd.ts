import { VirtualClock } from "@fairlead/base/testing";
import { FakeIptables } from "@fairlead/kernel/fake";
import type { RuleSet } from "@fairlead/netfilter";
import { goldenNode, nodeEnvironment } from "@fairlead/testkit";
import { type CrowdKernel, type CrowdNode, servedCrowd } from "@fairlead/testkit/crowds";
import { COUNTERS, createIptablesBackend } from "../../src/index.ts";
import { plannerOptions } from "./world.ts";

const NODE = goldenNode(false);
const NODE_ADDRESS = NODE.addresses[0] ?? "";
const counters = async () => new Set(COUNTERS);

/** Iptables mode on a fake; kube-proxy's rules and lists are the same, so that a restart stands for a take-over. */
export function iptablesCrowd(random: () => number): CrowdNode {
  const clock = new VirtualClock();
  const fake = new FakeIptables({ family: "IPv4", variant: "nft", nfacct: new Set(COUNTERS) });
  const lists = new RecentLists(fake, clock);
  return {
    options: plannerOptions(NODE),
    clock,
    nodeAddress: NODE_ADDRESS,
    sharesFrontends: true,
    // A list has the port's name in its own, as with kube-proxy.
    forgetsRenamed: true,
    ...servedCrowd(() => createIptablesBackend(fake, { counters }), lists, random),
  };
}

/** Which clients rules have seen, and when: a list goes with the last rule that names it (xt_recent). */
class RecentLists implements CrowdKernel {
  readonly #fake: FakeIptables;
  readonly #clock: VirtualClock;
  #changes = 0;
  /** By list and address: when, milliseconds. */
  readonly #seen = new Map<string, Map<string, number>>();

  constructor(fake: FakeIptables, clock: VirtualClock) {
    this.#fake = fake;
    this.#clock = clock;
  }

  changed(): void {
    this.#changes += 1;
    const named = new Set(listsIn(this.#fake.ruleSet()));
    for (const list of this.#seen.keys()) if (!named.has(list)) this.#seen.delete(list);
  }

  version(): number {
    return this.#changes;
  }

  rules(): RuleSet {
    return this.#fake.ruleSet();
  }

  environment(client: string) {
    const now = this.#clock.monotonic();
    const recent = new Map<string, ReadonlyMap<string, readonly number[]>>();
    for (const [list, addresses] of this.#seen) {
      const at = addresses.get(client);
      if (at !== undefined) recent.set(list, new Map([[client, [(now - at) / 1000]]]));
    }
    return { ...nodeEnvironment, localAddresses: [NODE_ADDRESS], recent };
  }

  knows(client: string): boolean {
    return [...this.#seen.values()].some((addresses) => addresses.has(client));
  }

  take({ recentlySeen }: Parameters<CrowdKernel["take"]>[0], client: string): void {
    for (const { list } of recentlySeen) {
      const addresses = this.#seen.get(list) ?? new Map<string, number>();
      this.#seen.set(list, addresses.set(client, this.#clock.monotonic()));
    }
  }
}

function listsIn(rules: RuleSet): readonly string[] {
  const all = [...rules.values()].flatMap(({ chains }) => [...chains.values()].flatMap(({ rules: list }) => list));
  return all.flatMap(({ matches }) => matches.flatMap((match) => (match.kind === "recent" ? [match.name] : [])));
}
