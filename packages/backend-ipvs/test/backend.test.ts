import { VirtualClock } from "@fairlead/base/testing";
import type { IPFamily, PlannerOptions } from "@fairlead/core";
import { compareRuleSets, parseSave, type RuleSet } from "@fairlead/netfilter";
import {
  type GoldenScenario,
  goldenNode,
  goldenScenarios,
  IPVS_RECORDED_ON,
  ipvsEnvironment,
  readIpvsText,
  TestCluster,
} from "@fairlead/testkit";
import {
  type CrowdKernel,
  type CrowdNode,
  crowdHistory,
  followCrowd,
  randomOf,
  servedCrowd,
} from "@fairlead/testkit/crowds";
import { slotHistory } from "@fairlead/testkit/histories";
import { expectReadmeExample } from "@fairlead/tooling/readme";
import { runs } from "@fairlead/tooling/runs";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { createIpvsBackend, DEVICE } from "../src/index.ts";
import { describeObjects, FakeNode, objectsOf } from "./support/fake-node.ts";
import { live, openWorld, plannerOptions, worldOptions } from "./support/world.ts";

/** One recording of kube-proxy in ipvs mode, taken apart. */
interface IpvsRecording {
  readonly name: string;
  readonly scenario: GoldenScenario;
  readonly families: readonly IPFamily[];
  readonly planner: PlannerOptions;
  /** As `objectsOf` describes a node. */
  readonly objects: readonly string[];
  readonly rules: Readonly<Partial<Record<IPFamily, RuleSet>>>;
}

function ipvsRecordings(): readonly IpvsRecording[] {
  return goldenScenarios().map((scenario) => {
    const { rules, servers, addresses, sets } = readIpvsText(scenario.ipvs);
    return {
      name: scenario.name,
      scenario,
      families: scenario.dualStack ? ["IPv4", "IPv6"] : ["IPv4"],
      planner: planner(scenario),
      objects: describeObjects(servers, addresses, sets),
      rules: {
        IPv4: parseSave(rules.IPv4 ?? "", { family: "IPv4" }),
        ...(rules.IPv6 !== undefined && { IPv6: parseSave(rules.IPv6, { family: "IPv6" }) }),
      },
    };
  });
}

function planner({ node, dualStack }: GoldenScenario): PlannerOptions {
  const nodeAddresses = {
    IPv4: ["127.0.0.1", IPVS_RECORDED_ON.IPv4],
    ...(dualStack && { IPv6: ["::1", IPVS_RECORDED_ON.IPv6, "fe80::1"] }),
  };
  const nodeIPs = { IPv4: IPVS_RECORDED_ON.IPv4, ...(dualStack && { IPv6: IPVS_RECORDED_ON.IPv6 }) };
  return plannerOptions(node, { nodeAddresses, nodeIPs });
}

const NODE_ADDRESS = goldenNode(false).addresses[0] ?? "";

type Template = NonNullable<Parameters<CrowdKernel["take"]>[0]["template"]>;

function ipvsCrowd(random: () => number): CrowdNode {
  const clock = new VirtualClock();
  const node = new FakeNode();
  const backendAnew = () => createIpvsBackend(node.port("IPv4"), { clock, onProblem: () => {} });
  return {
    options: worldOptions([NODE_ADDRESS, "127.0.0.1"]),
    clock,
    nodeAddress: NODE_ADDRESS,
    sharesFrontends: false,
    // The virtual servers stay as they are.
    inherits: true,
    ...servedCrowd(backendAnew, new Templates(node, clock), random),
  };
}

/** A template lasts as long as its virtual server, and is used where that has the destination. */
class Templates implements CrowdKernel {
  readonly #node: FakeNode;
  readonly #clock: VirtualClock;
  #changes = 0;
  #known = new Map<string, { readonly template: Template; readonly until: number }>();

  constructor(node: FakeNode, clock: VirtualClock) {
    this.#node = node;
    this.#clock = clock;
  }

  changed(): void {
    this.#changes += 1;
    const servers = new Map(this.#node.servers.servers().map((server) => [serverOf(server), server]));
    for (const [id, { template }] of this.#known) {
      const { destination } = template;
      const there = servers
        .get(serverOf(template.server))
        ?.destinations.find(
          (one) => one.address === destination.address && one.port === destination.port && one.weight > 0,
        );
      if (there === undefined) this.#known.delete(id);
    }
  }

  version(): string {
    return `${this.#changes} ${this.#clock.monotonic()}`;
  }

  rules() {
    return this.#node.rules.IPv4.ruleSet();
  }

  environment(client: string) {
    const addresses = this.#node.links.device(DEVICE) ?? [];
    const base = ipvsEnvironment({ servers: this.#node.servers.servers(), sets: this.#node.sets.sets(), addresses });
    const templates = [...this.#known.values()].filter(
      ({ template, until }) => template.client === client && until > this.#clock.monotonic(),
    );
    return {
      ...base,
      ...(base.ipvs && { ipvs: { ...base.ipvs, templates: templates.map(({ template }) => template) } }),
    };
  }

  knows(client: string): boolean {
    return [...this.#known.values()].some(({ template }) => template.client === client);
  }

  take({ template }: Parameters<CrowdKernel["take"]>[0], client: string): void {
    if (template === undefined) return;
    const server = this.#node.servers.servers().find((one) => serverOf(one) === serverOf(template.server));
    const until = this.#clock.monotonic() + 1000 * (server?.persistenceSeconds ?? 0);
    this.#known.set(`${client} ${serverOf(template.server)}`, { template: { ...template, client }, until });
  }
}

function serverOf({ protocol, address, port }: Template["server"]): string {
  return `${protocol} ${address} ${port}`;
}

const TABLES = ["nat", "filter"];

test.each(ipvsRecordings())("$name: as kube-proxy left it", async (recording) => {
  const node = new FakeNode();
  const cluster = new TestCluster(recording.planner);
  cluster.put(...recording.scenario.objects);
  cluster.replan();
  for (const family of recording.families) await createIpvsBackend(node.port(family)).sync(cluster.plan(family));
  expect(objectsOf(node)).toEqual(recording.objects);
  for (const family of recording.families) {
    expect(compareRuleSets(rules(recording.rules, family), ours(node.rules[family].ruleSet())), family).toEqual([]);
  }
});

function rules(recorded: Readonly<Partial<Record<IPFamily, RuleSet>>>, family: IPFamily): RuleSet {
  return recorded[family] ?? new Map();
}

function ours(ruleSet: RuleSet): RuleSet {
  return new Map([...ruleSet].filter(([table]) => TABLES.includes(table)));
}

test("200 clients, whatever happens to their service: each keeps its endpoint while it is usable", async () => {
  await fc.assert(
    fc.asyncProperty(crowdHistory(), fc.integer(), async (history, seed) => {
      await followCrowd(history, ipvsCrowd(randomOf(seed)));
    }),
    { numRuns: runs(4), endOnFailure: true },
  );
});

/** 192.0.2.1 and 203.0.113.1 are addresses that services have as well. */
const nodeAddresses = fc
  .subarray(["10.201.0.10", "10.202.0.10", "192.0.2.1", "203.0.113.1"])
  .map((addresses) => worldOptions([...addresses, "127.0.0.1"].sort()));

describe("whatever the history, the kernel is as after a fresh start", () => {
  test("changes in any order and split", async () => {
    await fc.assert(
      fc.asyncProperty(slotHistory, fc.boolean(), async (batches, resetStaleTCP) => {
        const made = await live(batches, { world: openWorld({ resetStaleTCP }) });
        expect(await made.differences()).toEqual([]);
      }),
      { numRuns: runs(50) },
    );
  });

  test("the node's addresses come and go meanwhile", async () => {
    await fc.assert(
      fc.asyncProperty(slotHistory, fc.array(nodeAddresses, { maxLength: 4 }), async (batches, options) => {
        const made = await live([]);
        for (const [step, batch] of batches.entries()) {
          await made.change(batch);
          const next = options[step];
          if (next !== undefined) await made.apply(made.world.setOptions(next));
        }
        expect(await made.differences()).toEqual([]);
      }),
      { numRuns: runs(35) },
    );
  });

  test("a full sync over the state of another history, as another process finds it", async () => {
    await fc.assert(
      fc.asyncProperty(slotHistory, slotHistory, async (first, second) => {
        const { node } = await live(first);
        const world = openWorld();
        for (const batch of second) world.change(batch);
        const made = await live([], { node, world });
        expect(await made.differences()).toEqual([]);
      }),
      { numRuns: runs(20) },
    );
  });
});

test("what it wrote is intact, and a sync over it writes nothing but rules", async () => {
  await fc.assert(
    fc.asyncProperty(slotHistory, async (batches) => {
      const made = await live(batches);
      expect(await made.backend.difference(made.world.plan)).toBeUndefined();
      const { objects } = await made.backend.sync(made.world.plan);
      expect(objects).toMatchObject({
        virtualServers: { written: 0 },
        addresses: { written: 0 },
        setMembers: { written: 0 },
      });
    }),
    { numRuns: runs(14) },
  );
});

test("README example", () => expectReadmeExample(import.meta.dirname));
