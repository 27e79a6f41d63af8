import { VirtualClock } from "@fairlead/base/testing";
import { createEndpointFilter } from "@fairlead/endpoint-filter";
import { FakeIptables } from "@fairlead/kernel/fake";
import { compareRuleSets, type RuleSet } from "@fairlead/netfilter";
import {
  type BackendsUnderTest,
  conformanceTable,
  differences,
  expectedWays,
  goldenNode,
  nodeEnvironment,
  runCase,
} from "@fairlead/testkit";
import {
  type CrowdKernel,
  type CrowdNode,
  crowdHistory,
  followCrowd,
  randomOf,
  servedCrowd,
} from "@fairlead/testkit/crowds";
import { noChange, type SlotState, slotHistory } from "@fairlead/testkit/histories";
import { expectReadmeExample } from "@fairlead/tooling/readme";
import { runs } from "@fairlead/tooling/runs";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { COUNTERS, createIptablesBackend } from "../src/index.ts";
import { recordedDifferences, recordings, sync } from "./support/recordings.ts";
import { openWorld, plannerOptions } from "./support/world.ts";

const NODE = goldenNode(false);
const NODE_ADDRESS = NODE.addresses[0] ?? "";
const counters = async () => new Set(COUNTERS);

/** Iptables mode on a fake; kube-proxy's rules and lists are the same, so that a restart stands for a take-over. */
function iptablesCrowd(random: () => number): CrowdNode {
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

const subjects: BackendsUnderTest = {
  open: (family, { localhostNodePorts }) => {
    const fake = new FakeIptables({ family, nfacct: new Set(COUNTERS) });
    const backend = createIptablesBackend(fake, { localhostNodePorts, counters: async (names) => new Set(names) });
    return { backend, ruleSet: () => fake.ruleSet() };
  },
  filter: (options) => createEndpointFilter({ ...options, excludeCIDRs: options.excludeClusterCIDRs }),
};

test.each(conformanceTable.map((row) => [row.name, row] as const))("%s", async (_, row) => {
  const expected = row.expected.iptables;
  if ("skip" in expected) throw new Error(`iptables mode skips it: ${expected.skip}`);
  const ways = await runCase(row, subjects);
  expect(differences(expectedWays(expected), ways, { probabilities: true })).toEqual([]);
});

test.each(recordings)("$name, $family: as kube-proxy left it, on the fake", async (recording) => {
  const fake = new FakeIptables({ family: recording.family, nfacct: new Set(COUNTERS) });
  await sync(fake, recording, async (names) => new Set(names));
  expect(recordedDifferences(recording, fake.ruleSet())).toEqual([]);
});

test("200 clients, whatever happens to their service: each keeps its endpoint while it is usable", async () => {
  await fc.assert(
    fc.asyncProperty(crowdHistory(), fc.integer(), async (history, seed) => {
      await followCrowd(history, iptablesCrowd(randomOf(seed)));
    }),
    { numRuns: runs(4), endOnFailure: true },
  );
});

describe("whatever the history, the kernel is as after a fresh start", () => {
  test("changes in any order and split", async () => {
    await fc.assert(
      fc.asyncProperty(slotHistory, fc.constantFrom("nft", "legacy"), async (batches, variant) => {
        const { fake, world } = await live(batches, variant);
        expect(compareRuleSets(await fresh(world.slots), fake.ruleSet())).toEqual([]);
      }),
      { numRuns: runs(35) },
    );
  });

  test("a full sync over the state of another history", async () => {
    await fc.assert(
      fc.asyncProperty(slotHistory, slotHistory, async (first, second) => {
        const { fake } = await live(first, "nft");
        const { world } = await live(second, "nft");
        await createIptablesBackend(fake, { counters }).sync(world.plan);
        expect(compareRuleSets(await fresh(world.slots), fake.ruleSet())).toEqual([]);
      }),
      { numRuns: runs(18) },
    );
  });
});

test("reports count what is there", async () => {
  await fc.assert(
    fc.asyncProperty(slotHistory, async (batches) => {
      const { fake, world, backend } = await live(batches, "nft");
      const partial = await backend.apply(world.plan, noChange);
      const full = await backend.sync(world.plan);
      const jumps = { nat: 3, filter: 11 };
      for (const table of ["nat", "filter"] as const) {
        const rules = [...fake.table(table).chains.values()].flatMap((chain) => chain.rules);
        expect(full.objects[table]?.total, table).toBe(rules.length - jumps[table]);
        expect(partial.objects[table]?.total, table).toBe(full.objects[table]?.total);
      }
    }),
    { numRuns: runs(10) },
  );
});

async function live(
  batches: readonly (readonly (readonly [number, SlotState | undefined])[])[],
  variant: "nft" | "legacy",
) {
  const fake = new FakeIptables({ family: "IPv4", variant, nfacct: new Set(COUNTERS) });
  const backend = createIptablesBackend(fake, { counters });
  const world = openWorld();
  await backend.sync(world.plan);
  for (const batch of batches) {
    const change = world.change(batch);
    if (change === undefined) continue;
    const report = await backend.apply(world.plan, change);
    expect(report.kind).toBe("partial");
  }
  return { fake, world, backend };
}

async function fresh(slots: Iterable<readonly [number, SlotState]>): Promise<RuleSet> {
  const fake = new FakeIptables({ family: "IPv4", nfacct: new Set(COUNTERS) });
  const world = openWorld();
  world.change(slots);
  await createIptablesBackend(fake, { counters }).sync(world.plan);
  return fake.ruleSet();
}

test("README example", () => expectReadmeExample(import.meta.dirname));
