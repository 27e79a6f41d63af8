import { FakeIptables, type Fault } from "@fairlead/kernel/fake";
import { type RuleSet, renderRule } from "@fairlead/netfilter";
import {
  clientA,
  conformanceCase,
  everyMode,
  LEAVE,
  NODE_A,
  outside,
  relayedWays,
  tracedWays,
  webB1,
} from "@fairlead/testkit";
import { runs } from "@fairlead/tooling/runs";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { FakeSockets } from "../src/fake/index.ts";
import { createUserspaceBackend } from "../src/index.ts";
import { type Live, live, type Step, stepOf, World } from "./support/world.ts";

const SLOTS = [1, 2, 3];
const anyStep = stepOf(SLOTS.length);

const fault: fc.Arbitrary<Fault> = fc.oneof(
  fc.constant<Fault>({ kind: "fail" }),
  fc.constant<Fault>({ kind: "lost" }),
  fc.integer({ min: 0, max: 3 }).map((transactions): Fault => ({ kind: "kill", transactions })),
);

/** Node ports that drop what comes from outside reject everything from then on; the last transaction is not written. */
const OTHER_REFUSAL: [Step, Step, Fault] = [
  [[3, { endpoints: [webB1], loadBalancer: "VIP", externally: "Local" }]],
  [[3, { endpoints: [], nodePort: true }]],
  { kind: "kill", transactions: 2 },
];

describe("a fault at any process: every packet goes as before or as wanted, and the next sync converges", () => {
  test("in a change", async () => {
    await fc.assert(
      fc.asyncProperty(anyStep, anyStep, fault, async (before, after, injected) => {
        const made = await serving(before);
        const old = ends(made);
        const change = made.world.change(after);
        if (change === undefined) return;
        made.faults.failNext(injected);
        await ignoringFault(made.backend.apply(made.world.plan(), change));
        made.faults.clear();
        expect(wrong(ends(made), old, ends(await fresh(made.world)))).toEqual([]);
        await made.backend.sync(made.world.plan());
        expect(made.held()).toEqual((await fresh(made.world)).held());
      }),
      { numRuns: runs(14), examples: [OTHER_REFUSAL] },
    );
  });

  test("in a full sync, at any of its processes", async () => {
    await fc.assert(
      fc.asyncProperty(
        anyStep,
        anyStep,
        fault,
        fc.integer({ min: 1, max: 8 }),
        async (before, after, injected, call) => {
          const made = await serving(before);
          const old = ends(made);
          made.world.change(after);
          made.faults.failCall(made.faults.calls.length + call, injected);
          await ignoringFault(made.backend.sync(made.world.plan()));
          made.faults.clear();
          expect(wrong(ends(made), old, ends(await fresh(made.world)))).toEqual([]);
          await made.backend.sync(made.world.plan());
          expect(made.held()).toEqual((await fresh(made.world)).held());
        },
      ),
      { numRuns: runs(14) },
    );
  });

  test("and the caller goes on with changes", async () => {
    await fc.assert(
      fc.asyncProperty(anyStep, anyStep, anyStep, fault, async (before, after, later, injected) => {
        const made = await serving(before);
        made.faults.failNext(injected);
        for (const step of [after, later]) {
          const change = made.world.change(step);
          if (change !== undefined) await ignoringFault(made.backend.apply(made.world.plan(), change));
        }
        made.faults.clear();
        await made.backend.sync(made.world.plan());
        expect(made.held()).toEqual((await fresh(made.world)).held());
      }),
      { numRuns: runs(14) },
    );
  });
});

test("what is missing is found, and written again", async () => {
  for (const table of ["nat", "filter"] as const) {
    const made = await serving([[1, { endpoints: [clientA], nodePort: true }]]);
    expect(await made.backend.difference(made.world.plan())).toBeUndefined();
    made.kernel.flush(table);
    expect(await made.backend.difference(made.world.plan())).toBeDefined();
    await made.backend.sync(made.world.plan());
    expect(await made.backend.difference(made.world.plan())).toBeUndefined();
  }
});

test("a rule in another's place is found, and what was written comes back, by one process a table to look", async () => {
  const made = await serving([[1, { endpoints: [clientA], nodePort: true }]]);
  const before = made.held();
  const [rule] = made.kernel.table("nat").chains.get("KUBE-PORTALS-CONTAINER")?.rules.map(renderRule) ?? [];
  await made.kernel.meddle(`*nat\n-D KUBE-PORTALS-CONTAINER ${rule}\n-A KUBE-PORTALS-CONTAINER -j RETURN\nCOMMIT\n`);
  const calls = made.faults.calls.length;
  expect(await made.backend.difference(made.world.plan())).toBeDefined();
  expect(made.faults.calls.length - calls).toBeLessThanOrEqual(2);
  await made.backend.sync(made.world.plan());
  expect(made.held()).toEqual(before);
});

test("refusals at addresses stand before those at node ports, whichever came first", async () => {
  const made = await serving([[1, { endpoints: [], nodePort: true }]]);
  await made.change([[2, { endpoints: [], nodePort: true, external: true }]]);
  const order = made.kernel
    .table("filter")
    .chains.get("KUBE-EXTERNAL-SERVICES")
    ?.rules.map(({ destination }) => destination?.cidr ?? "node port");
  expect(order).toEqual(["192.0.2.2/32", "node port", "node port"]);
});

describe("sockets that cannot be had", () => {
  test("the service is reported and refused, the others are served, and it is tried again", async () => {
    const made = live({ portRange: { from: 5000, to: 5001 } });
    made.sockets.taken.add("10.201.0.10:5001 tcp");
    made.world.change([[1, { endpoints: [clientA] }]]);
    await made.backend.sync(made.world.plan());
    expect(made.sockets.listening).toHaveLength(1);
    expect(made.problems).toEqual([
      expect.stringMatching(/^default\/\S+: failed to listen; rejecting its packets: .*EADDRINUSE/),
    ]);
    const refused = made.held().filter((line) => line.includes("REJECT"));
    expect(refused).toHaveLength(1);
    expect(await made.backend.maintain()).toBe(30_000);
    made.sockets.taken.clear();
    await made.clock.advance(30_000);
    expect(await made.backend.maintain()).toBeUndefined();
    expect(made.sockets.listening).toHaveLength(2);
    expect(made.held().filter((line) => line.includes("REJECT"))).toEqual([]);
  });

  test("SCTP is reported once for each service, and refused", async () => {
    const made = await serving([[1, { endpoints: [clientA], protocol: "SCTP" }]]);
    await made.backend.sync(made.world.plan());
    expect(made.problems).toEqual(["default/svc-1: SCTP cannot be relayed in user space; rejecting its packets"]);
    expect(await made.backend.maintain()).toBeUndefined();
  });

  test("a node without an address to listen on, where nothing is relayed and where something is", async () => {
    const made = live();
    const { family, node, groups, foreignClusterIPs, healthChecks, endpointCount } = made.world.plan();
    const nodeAddresses = ["127.0.0.1", "169.254.1.1"];
    const lone = { family, node: { ...node, nodeAddresses }, foreignClusterIPs, healthChecks, endpointCount };
    await expect(made.backend.sync({ ...lone, groups: new Map() })).resolves.toMatchObject({ kind: "full" });
    await expect(made.backend.sync({ ...lone, groups })).rejects.toThrow("--bind-address");
    await made.backend.sync(made.world.plan());
    expect(made.sockets.listening).toHaveLength(1);
  });
});

async function serving(step: Parameters<World["change"]>[0]): Promise<Live> {
  const made = live();
  made.world.change(step);
  await made.backend.sync(made.world.plan());
  return made;
}

async function fresh(world: World): Promise<Live> {
  const made = live({}, undefined, world);
  await made.backend.sync(made.world.plan());
  return made;
}

/** Where packets of every source class to every frontend end: refused, left, or at a service's relay. */
function ends({ kernel, sockets, world }: Live): ReadonlyMap<string, string> {
  const ruleSet = kernel.ruleSet();
  const found = new Map<string, string>();
  for (const slot of SLOTS) {
    const { clusterIP, externalIP, loadBalancerIP, port, nodePort } = world.workload(slot);
    const frontends = [
      [clusterIP.IPv4, port],
      [externalIP.IPv4, port],
      [loadBalancerIP.IPv4, port],
      [NODE_A.addresses.IPv4, nodePort],
    ] as const;
    for (const protocol of ["TCP", "UDP"] as const) {
      for (const [to, at] of frontends) {
        for (const from of [clientA, NODE_A, outside]) {
          const packet = { from, to, port: at, protocol, history: [[]], expected: everyMode(LEAVE) } as const;
          found.set(`${from.name} ${to}:${at} ${protocol}`, endOf(ruleSet, packet, sockets));
        }
      }
    }
  }
  return found;
}

function endOf(ruleSet: RuleSet, fields: Parameters<typeof conformanceCase>[2], sockets: Live["sockets"]): string {
  const ways = tracedWays(conformanceCase("fault", "packet", fields), ruleSet);
  const ask = (socket: string) => sockets.serviceAt(fields.protocol ?? "TCP", socket);
  return [...relayedWays(ways, ask, false).keys()].join(", ");
}

function wrong(
  now: ReadonlyMap<string, string>,
  before: ReadonlyMap<string, string>,
  after: ReadonlyMap<string, string>,
): readonly string[] {
  return [...now]
    .filter(([packet, end]) => !isEndBetween(end, before.get(packet), after.get(packet)))
    .map(([packet, end]) => `${packet}: ${end}; before: ${before.get(packet)}, wanted: ${after.get(packet)}`);
}

/** As in one of the two states, or refused where one of them does not serve it. */
function isEndBetween(end: string, before: string | undefined, after: string | undefined): boolean {
  if (end === before || end === after) return true;
  return (before === "leave" || after === "leave") && (end === "drop" || end === "reject");
}

async function ignoringFault(work: Promise<unknown>): Promise<void> {
  await work.catch((error: unknown) => {
    if (!(error instanceof Error) || error.name !== "IptablesError") throw error;
  });
}

/** iptables that says whether anything changed, and may lie. */
function liar() {
  const kernel = new FakeIptables({ family: "IPv4", glances: true });
  return { kernel, backend: createUserspaceBackend(kernel, { open: new FakeSockets().open }) };
}

test("a change that was not written is an error at once", async () => {
  const { kernel, backend } = liar();
  const world = new World();
  await backend.sync(world.plan());
  kernel.lies = true;
  const change = world.change([[1, { endpoints: [] }]]);
  await expect(change && backend.apply(world.plan(), change)).rejects.toThrow(
    "iptables-restore (IPv4) reported success, but the kernel's rules are as they were before",
  );
  kernel.lies = false;
  await backend.sync(world.plan());
  expect(await backend.difference(world.plan())).toBeUndefined();
});

test("so is a full sync", async () => {
  const { kernel, backend } = liar();
  kernel.lies = true;
  await expect(backend.sync(new World().plan())).rejects.toThrow("reported success");
});
