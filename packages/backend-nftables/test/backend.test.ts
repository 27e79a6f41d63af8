import { VirtualClock } from "@fairlead/base/testing";
import { createEndpointFilter } from "@fairlead/endpoint-filter";
import { FakeNftables } from "@fairlead/kernel/fake";
import {
  addressHex,
  type Hex,
  NFT_FAMILY,
  type NftSet,
  type NftTable,
  type SetElement,
  tableText,
} from "@fairlead/netfilter/nft";
import {
  type BackendsUnderTest,
  conformanceTable,
  differences,
  expectedWays,
  goldenNode,
  nftablesRow,
  nodeEnvironment,
  runCase,
} from "@fairlead/testkit";
import {
  type CrowdHistory,
  type CrowdKernel,
  type CrowdNode,
  crowdHistory,
  followCrowd,
  randomOf,
  servedCrowd,
} from "@fairlead/testkit/crowds";
import { type SlotState, slotHistory } from "@fairlead/testkit/histories";
import { expectReadmeExample } from "@fairlead/tooling/readme";
import { runs } from "@fairlead/tooling/runs";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { createNftablesBackend, planTable, tableName } from "../src/index.ts";
import { kubeProxyAffinitySet } from "../src/plan/context.ts";
import { meaning } from "./support/tables.ts";
import {
  type Batches,
  type Block,
  blocksOf,
  openLive,
  openWorld,
  plannerOptions,
  recordings,
} from "./support/world.ts";

const NODE = goldenNode(false);
const NODE_ADDRESS = NODE.addresses[0] ?? "";

/** Nftables mode on a fake; kube-proxy's part is what it leaves in the kernel. */
function nftablesCrowd(random: () => number): CrowdNode {
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

const subjects = (fastPath: boolean): BackendsUnderTest => ({
  open: (family) => {
    const fake = new FakeNftables();
    const backend = createNftablesBackend(fake, { family, fastPath });
    const ruleSet = async () => {
      const table = await fake.table(NFT_FAMILY[family], tableName(""));
      return { nftables: table === undefined ? [] : [table] };
    };
    return { backend, ruleSet };
  },
  filter: (options) => createEndpointFilter({ ...options, excludeCIDRs: options.excludeClusterCIDRs }),
});

const rows = conformanceTable.map(nftablesRow);

/** The fast path is for connections that are established: it decides for no first packet. */
describe.each([false, true])("nftables mode, fast path %j", (fastPath) => {
  test.each(rows.filter(({ expected }) => !("skip" in expected.nftables)))("$name", async (row) => {
    const { nftables } = row.expected;
    if ("skip" in nftables) throw new Error(nftables.skip);
    const ways = await runCase(row, subjects(fastPath));
    expect(differences(expectedWays(nftables), ways, { probabilities: true, uneven: 0.005 })).toEqual([]);
  });

  test("the table leaves one row open, of an address that no service of this proxy has", () => {
    const open = rows.filter(({ expected }) => "skip" in expected.nftables);
    expect(open.map(({ name }) => name)).toEqual(["cluster IP: another proxy's service is left"]);
  });
});

test.each(recordings())("$name, $family: the fixed part is kube-proxy's", ({ plan, text }) => {
  const ours = tableText(planTable(plan));
  expect(fixedPart(ours, text)).toEqual(fixedPart(text, text));
  expect(ours.split("\n").slice(0, 2)).toEqual(text.split("\n").slice(0, 2));
});

test.each(recordings())(
  "$name, $family: the same frontends are served, each service under its name",
  ({ plan, text }) => {
    const dispatch = (listing: string) =>
      blocksOf(listing)
        .filter(({ head }) => VALUES_ARE_OURS.has(head))
        .map(({ head, elements }) => ({
          head,
          keys: elements.map((element) => element.replace(/ (?:comment|:) .*$/, "")),
        }));
    expect(dispatch(tableText(planTable(plan)))).toEqual(dispatch(text));
  },
);

/** Where they lead, and what a service's own chains have in them, is ours; firewall-ips is compared with its values. */
const VALUES_ARE_OURS = new Set(["map service-ips", "map service-nodeports"]);

/** Sets, maps and chains of names that do not come from services, in their order. */
function fixedPart(listing: string, recorded: string): readonly Block[] {
  const fixed = new Set(blocksOf(recorded).flatMap(({ head }) => (isFixed(head) ? [head] : [])));
  return blocksOf(listing)
    .filter(({ head }) => fixed.has(head))
    .map((block) => (VALUES_ARE_OURS.has(block.head) ? { ...block, elements: [] } : block));
}

function isFixed(head: string): boolean {
  return !head.includes("/");
}

type Step = CrowdHistory[number]["step"];
type Conditions = Extract<Step, { readonly kind: "endpoints" }>["conditions"];

const awake = (...steps: readonly Step[]): CrowdHistory => steps.map((step) => ({ step, asleep: false }));
/** `##..` is: the first two are ready, of twelve. */
const ready = (text: string): Conditions =>
  Array.from({ length: 12 }, (_, at) => (text[at] === "#" ? "ready" : "none"));
const endpoints = (text: string): Step => ({ kind: "endpoints", conditions: ready(text) });

test.each<readonly [string, CrowdHistory]>([
  ["scaled to none and back, all spread", awake(endpoints("#"), endpoints(""), endpoints(".##########"))],
  ["so they do where one has the old address", awake(endpoints("#"), endpoints(""), endpoints("##########"))],
  [
    "another service at the same address inherits no client",
    awake(endpoints("#"), endpoints("##########"), { kind: "other" }),
  ],
  ["nor does the same service once it was gone", awake(endpoints("##########"), { kind: "again" })],
  ["a new endpoint takes no client from others", awake(endpoints("####"), endpoints("#####"), endpoints("#####.#"))],
  ["one that comes back does not, either", awake(endpoints("####"), endpoints("###"), endpoints("####"))],
  ["rolling update", awake(...["#####", "######", ".#####", ".######", "..#####", "..######"].map(endpoints))],
  ["another timeout", awake({ kind: "timeout", seconds: 600 }, { kind: "timeout", seconds: 3600 })],
  ["another timeout, and a restart", awake({ kind: "timeout", seconds: 600 }, { kind: "restart" })],
  ["a renamed port", awake({ kind: "renamed" }, { kind: "restart" })],
  ["kube-proxy in between, twice", awake({ kind: "kube-proxy" }, endpoints("#######"), { kind: "kube-proxy" })],
  ["away for too long, all are spread anew", awake(endpoints("#"), endpoints("###"), { kind: "long-wait" })],
])("200 clients: %s", async (_, history) => {
  await expect(followCrowd(history, nftablesCrowd(randomOf(7)))).resolves.toBeUndefined();
});

test("200 clients, whatever happens to their service: each keeps its endpoint while it is usable", async () => {
  await fc.assert(
    fc.asyncProperty(crowdHistory(), fc.integer(), async (history, seed) => {
      await followCrowd(history, nftablesCrowd(randomOf(seed)));
    }),
    { numRuns: runs(7), endOnFailure: true },
  );
});

describe("whatever the history, packets fare as after a fresh start", () => {
  test.each([{}, { fastPath: true }])("changes in any order and split, with %j", async (settings) => {
    await fc.assert(
      fc.asyncProperty(slotHistory, async (batches) => {
        const { table, world } = await live(batches, settings);
        expect(text(table())).toBe(fresh(world.slots, settings));
      }),
      { numRuns: runs(20) },
    );
  });

  test("a full sync over the state of another history", async () => {
    await fc.assert(
      fc.asyncProperty(slotHistory, slotHistory, async (first, second) => {
        const { backend, table } = await live(first);
        const { world } = await live(second);
        await backend.sync(world.plan);
        expect(text(table())).toBe(fresh(world.slots));
      }),
      { numRuns: runs(10) },
    );
  });
});

test("reports count what is there", async () => {
  await fc.assert(
    fc.asyncProperty(slotHistory, async (batches) => {
      const { backend, world, report } = await live(batches);
      const full = await backend.sync(world.plan);
      for (const kind of ["services", "endpoints"]) {
        expect(full.objects[kind]?.written, kind).toBe(full.objects[kind]?.total);
        if (report !== undefined) expect(report.objects[kind]?.total, kind).toBe(full.objects[kind]?.total);
      }
    }),
    { numRuns: runs(10) },
  );
});

async function live(batches: Batches, settings: Parameters<typeof openLive>[0] = {}) {
  const { clock, backend, world, table } = await openLive(settings);
  let report: Awaited<ReturnType<typeof backend.apply>> | undefined;
  for (const batch of batches) {
    const change = world.change(batch);
    if (change === undefined) continue;
    report = await backend.apply(world.plan, change);
    expect(report.kind).toBe("partial");
    // What is deleted later is deleted now and then.
    const wait = await backend.maintain();
    if (wait !== undefined && batch.length % 2 === 0) {
      await clock.advance(wait);
      await backend.maintain();
    }
  }
  for (let times = 0; times < 2; times++) await clock.advance((await backend.maintain()) ?? 0);
  expect(await backend.maintain()).toBeUndefined();
  return { backend, world, table, report };
}

function fresh(slots: Iterable<readonly [number, SlotState]>, settings = {}) {
  const world = openWorld();
  world.change(slots);
  return text(planTable(world.plan, settings));
}

/** Compared as one: the difference of two such large objects takes longer than the test. */
function text(table: NftTable): string {
  return JSON.stringify(meaning(table), null, 1);
}

test("README example", () => expectReadmeExample(import.meta.dirname));
