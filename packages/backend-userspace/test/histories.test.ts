import { FakeIptables } from "@fairlead/kernel/fake";
import { webA1, webB1 } from "@fairlead/testkit";
import { runs } from "@fairlead/tooling/runs";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { live } from "./support/live.ts";
import { stepOf, type World } from "./support/world.ts";

const anyStep = stepOf(5);
const history = fc.array(anyStep, { minLength: 1, maxLength: 6 });

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

  test("the same changes at once, and twice", async () => {
    await fc.assert(
      fc.asyncProperty(history, async (steps) => {
        await expectFresh(await after([steps.flat()]));
        await expectFresh(await after([...steps, ...steps]));
      }),
      { numRuns: runs(10) },
    );
  });

  test("there and back again: nothing is left", async () => {
    await fc.assert(
      fc.asyncProperty(history, async (steps) => {
        const back = steps.flat().map(([slot]) => [slot, undefined] as const);
        const made = await after([...steps, back]);
        await expectFresh(made);
        expect(made.sockets.listening).toHaveLength(1);
      }),
      { numRuns: runs(18) },
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

test("foreign services have no rule and no socket", async () => {
  await fc.assert(
    fc.asyncProperty(history, async (steps) => {
      const made = await after(steps);
      const text = made.held().join("\n");
      for (const [slot, { endpoints }] of made.world.slots) {
        const foreign =
          endpoints.length > 0 && endpoints.every((host) => "name" in host && host.name.startsWith("ovn"));
        if (!foreign) continue;
        expect(text).not.toContain(`${made.world.workload(slot).clusterIP.IPv4}/32`);
        expect(text).not.toContain(`/svc-${slot}`);
        expect(made.sockets.listening.map((key) => made.sockets.serviceAt(...reversed(key)))).not.toContain(
          `default/svc-${slot}`,
        );
      }
    }),
    { numRuns: runs(35) },
  );
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

test("a change of endpoints alone starts no process", async () => {
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
