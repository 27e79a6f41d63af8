import { contains, socketText } from "@fairlead/base";
import { VirtualClock } from "@fairlead/base/testing";
import type { ForwardingPlan } from "@fairlead/core";
import { createEndpointFilter } from "@fairlead/endpoint-filter";
import { FakeIptables } from "@fairlead/kernel/fake";
import type { RuleSet } from "@fairlead/netfilter";
import {
  type ConformanceCase,
  conformanceTable,
  differences,
  expectedWays,
  goldenNode,
  goldenPlannerOptions,
  NETWORKS,
  type OutcomeShares,
  outside,
  relayedWays,
  runCase,
  userspaceExpected,
  webA1,
  webB1,
} from "@fairlead/testkit";
import { type CrowdNode, crowdHistory, followCrowd } from "@fairlead/testkit/crowds";
import { historyOf } from "@fairlead/testkit/histories";
import { expectReadmeExample } from "@fairlead/tooling/readme";
import { runs } from "@fairlead/tooling/runs";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { FakeSockets } from "../src/fake/index.ts";
import { createUserspaceBackend, userspaceSemantics } from "../src/index.ts";
import { Balancer, endpointKey } from "../src/relay/balancer.ts";
import { serveSets } from "./support/servers.ts";
import { live, stepOf, type World } from "./support/world.ts";

test.each(conformanceTable.map((row) => [row.name, row] as const))("%s", async (_, row) => {
  const expected = userspaceExpected(row);
  if ("skip" in expected) throw new Error(`userspace mode skips it: ${expected.skip}`);
  expect(differences(expectedWays(expected), await waysOf(row), { probabilities: true })).toEqual([]);
});

/** What is for clients from outside, which ClusterIPs are not. */
const fromOutside = conformanceTable.filter((row) => {
  const ways = [...expectedOf(row).keys()];
  const { from, destination } = row.packet;
  const isClusterIP = Object.values(NETWORKS.services).some((cidr) => contains(cidr, destination));
  return from === outside && !isClusterIP && ways.length > 0 && ways.every((way) => /^\S+:\d+/.test(way));
});

describe("where INPUT drops by default", () => {
  test("there are rows of chosen node ports", () => {
    expect(fromOutside.map(({ topic }) => topic)).toContain("chosen node ports");
  });

  test.each(fromOutside.map((row) => [row.name, row] as const))("%s", async (_, row) => {
    const ways = await waysOf(row, droppingInput);
    expect(differences(expectedOf(row), ways, { probabilities: true })).toEqual([]);
  });
});

function expectedOf(row: ConformanceCase): OutcomeShares {
  const expected = userspaceExpected(row);
  return "skip" in expected ? new Map() : expectedWays(expected);
}

function droppingInput(rules: RuleSet): RuleSet {
  const filter = rules.get("filter");
  const input = filter?.chains.get("INPUT");
  if (filter === undefined || input === undefined) throw new Error("there is no chain INPUT");
  const chains = new Map([...filter.chains, ["INPUT", { ...input, policy: "DROP" as const }]]);
  return new Map([...rules, ["filter", { ...filter, chains }]]);
}

async function waysOf(row: ConformanceCase, within = (rules: RuleSet) => rules): Promise<OutcomeShares> {
  const sockets = new FakeSockets();
  const ways = await runCase(row, {
    open: (family, { localhostNodePorts }) => {
      const fake = new FakeIptables({ family });
      const backend = createUserspaceBackend(fake, { localhostNodePorts, open: sockets.open });
      return { backend, ruleSet: () => within(fake.ruleSet()) };
    },
    filter: (options) => createEndpointFilter({ ...options, excludeCIDRs: options.excludeClusterCIDRs }),
  });
  const ask = (socket: string, client: string) => {
    const { protocol } = row.packet;
    if (sockets.serviceAt(protocol, socket) === undefined) return undefined;
    const endpoint = sockets.ask(protocol, socket, client);
    return endpoint ? socketText(endpoint.address, endpoint.port) : "reject";
  };
  return relayedWays(ways, ask, row.sticky);
}

test("200 clients, whatever happens to their service: each keeps its endpoint while it is usable", async () => {
  await fc.assert(
    fc.asyncProperty(crowdHistory(), async (history) => {
      await followCrowd(history, userspaceCrowd());
    }),
    { numRuns: 50, endOnFailure: true },
  );
});

/** The balancers of service ports, by their ids, as the relays have them. */
function userspaceCrowd(): CrowdNode {
  const clock = new VirtualClock();
  const balancers = new Map<string, Balancer>();
  const serve = async ({ groups }: ForwardingPlan) => {
    for (const id of balancers.keys()) if (!groups.has(id)) balancers.delete(id);
    for (const [id, group] of groups) {
      const balancer = balancers.get(id) ?? new Balancer(() => clock.monotonic());
      balancers.set(id, balancer);
      serveSets(balancer, group);
    }
  };
  return {
    options: goldenPlannerOptions(goldenNode(false), userspaceSemantics),
    clock,
    nodeAddress: "",
    sharesFrontends: true,
    forgetsRenamed: true,
    forgetsAtRestart: true,
    apply: serve,
    fullSync: serve,
    restart: (plan) => {
      balancers.clear();
      return serve(plan);
    },
    connect: (client) => {
      const [balancer] = balancers.values();
      return endpointKey(balancer?.choose("cluster", client, new Set())) || "reject";
    },
  };
}

const history = historyOf(stepOf(5));

async function after(steps: Iterable<Parameters<World["change"]>[0]>) {
  const made = live();
  await made.backend.sync(made.world.plan());
  for (const step of steps) await made.change(step);
  return made;
}

/** A fresh start with the same plan, whose ownership follows from the history as well. */
async function fresh(world: World) {
  const made = live({}, undefined, world);
  await made.backend.sync(made.world.plan());
  return made;
}

/** Sockets without their ports, which say nothing. */
function services({ sockets }: Awaited<ReturnType<typeof after>>): readonly string[] {
  return sockets.listening
    .map((key) => key.split(" "))
    .map(([socket = "", protocol = ""]) => `${protocol} ${sockets.serviceAt(protocol, socket)}`)
    .sort();
}

async function expectFresh(made: Awaited<ReturnType<typeof after>>): Promise<void> {
  const wanted = await fresh(made.world);
  expect(made.held()).toEqual(wanted.held());
  expect(services(made)).toEqual(services(wanted));
}

describe("whatever the history, rules and sockets are as after a fresh start", () => {
  test("changes in any order and split", async () => {
    await fc.assert(
      fc.asyncProperty(history, async (steps) => expectFresh(await after(steps))),
      { numRuns: runs(35) },
    );
  });

  test("a full sync over what another process left", async () => {
    await fc.assert(
      fc.asyncProperty(history, history, async (first, second) => {
        const old = await after(first);
        const made = live({}, old.kernel);
        made.world.change(second.flat());
        await made.backend.sync(made.world.plan());
        await expectFresh(made);
      }),
      { numRuns: runs(18) },
    );
  });

  test("cleanup leaves nothing", async () => {
    await fc.assert(
      fc.asyncProperty(history, async (steps) => {
        const made = await after(steps);
        await made.backend.cleanup();
        expect(made.held()).toEqual([]);
        expect([...(await made.kernel.chains("nat"))].filter((chain) => chain.startsWith("KUBE-"))).toEqual([]);
        expect([...(await made.kernel.chains("filter"))].filter((chain) => chain.startsWith("KUBE-"))).toEqual([]);
        expect(made.sockets.listening).toEqual([]);
      }),
      { numRuns: runs(10) },
    );
  });
});

function reversed(key: string): [protocol: string, socket: string] {
  const [socket = "", protocol = ""] = key.split(" ");
  return [protocol, socket];
}

test("reports count what is there", async () => {
  await fc.assert(
    fc.asyncProperty(history, async (steps) => {
      const made = await after(steps);
      const { objects } = await made.backend.sync(made.world.plan());
      const jumps = { nat: 4, filter: 8 };
      for (const table of ["nat", "filter"] as const) {
        const rules = [...made.kernel.table(table).chains.values()].flatMap((chain) => chain.rules);
        expect(objects[table]?.total, table).toBe(rules.length - jumps[table]);
      }
    }),
    { numRuns: runs(10) },
  );
});

test("a change of only endpoints starts no process", async () => {
  const made = live();
  made.world.change([[1, { endpoints: [webA1] }]]);
  await made.backend.sync(made.world.plan());
  const calls = made.faults.calls.length;
  await made.change([[1, { endpoints: [webB1] }]]);
  expect(made.faults.calls.length).toBe(calls);
  const [socket = ""] = made.sockets.listening.filter(
    (key) => made.sockets.serviceAt(...reversed(key)) === "default/svc-1",
  );
  expect(made.sockets.ask("TCP", socket.split(" ")[0] ?? "", "client")).toMatchObject({
    address: webB1.addresses.IPv4,
  });
});

test("another kernel's rules of kube-proxy v1.25 in this mode are replaced", async () => {
  const kernel = new FakeIptables({ family: "IPv4" });
  await kernel.meddle(
    [
      "*nat",
      ":KUBE-PORTALS-CONTAINER - [0:0]",
      ":KUBE-PORTALS-HOST - [0:0]",
      '-A PREROUTING -m comment --comment "handle ClusterIPs; NOTE: this must be before the NodePort rules" -j KUBE-PORTALS-CONTAINER',
      "-A KUBE-PORTALS-CONTAINER -d 10.96.0.9/32 -p tcp -m comment --comment default/old -m tcp --dport 80 -j REDIRECT --to-ports 33333",
      "COMMIT",
      "",
    ].join("\n"),
  );
  const made = live({}, kernel);
  await made.backend.sync(made.world.plan());
  await expectFresh(made);
});

test("README example", () => expectReadmeExample(import.meta.dirname));
