import { createNfacct, type IPFamily, type IptablesClient, openIptables, type Variant } from "@fairlead/kernel";
import { compareRuleSets, type RuleSet } from "@fairlead/netfilter";
import { goldenNode } from "@fairlead/testkit";
import { crowdHistory, followCrowd, inRealTime, openRealCrowd } from "@fairlead/testkit/crowds";
import { slotHistory } from "@fairlead/testkit/histories";
import { changeOf, clusterIPGroup, endpoints, nodePlan, planOf } from "@fairlead/testkit/plans";
import { insideTest, kernelTest, type TestKernel } from "@fairlead/testkit/real-kernel";
import { countWeighted } from "@fairlead/testkit/weighted-packets";
import { runs } from "@fairlead/tooling/runs";
import fc from "fast-check";
import { describe, expect } from "vitest";
import { createIptablesBackend, type RulesPort } from "../src/index.ts";
import { FLAT, fresh, manyServices, planWith, syncUntilTaken } from "./support/many-services.ts";
import { RecordingPort } from "./support/recording-port.ts";
import { recordedDifferences, recordings, sync, TABLES } from "./support/recordings.ts";
import { openWorld, plannerOptions } from "./support/world.ts";

/** A flush, and one edit of each kind: fixed-chains.test.ts has all chains. */
const EDITS: readonly (readonly string[])[] = [
  ["-t nat -F"],
  ["-t filter -F"],
  ["-t nat -F", "-t nat -X"],
  ["-t nat -D KUBE-POSTROUTING 1"],
  ["-t nat -I KUBE-SERVICES 1 -j RETURN"],
  ["-t nat -R KUBE-MARK-MASQ 1 -j MARK --set-xmark 0x8000/0x8000"],
];

describe.each(["nft", "legacy"] as const)("%s", (variant) => {
  kernelTest("changes lead to the state of a fresh start", async (kernel) => {
    const counters = countersIn(kernel);
    await fc.assert(
      fc.asyncProperty(slotHistory, async (batches) => {
        const port = await open(kernel, "IPv4", variant);
        const backend = createIptablesBackend(port, { counters });
        const world = openWorld();
        await backend.sync(world.plan);
        for (const batch of batches) {
          const change = world.change(batch);
          if (change !== undefined) await backend.apply(world.plan, change);
        }
        const lived = await saved(port);
        for (const table of ["filter", "nat"]) {
          await iptables(kernel, port, ["-t", table, "-F"]);
          await iptables(kernel, port, ["-t", table, "-X"]);
        }
        await createIptablesBackend(port, { counters }).sync(world.plan);
        expect(compareRuleSets(await saved(port), lived)).toEqual([]);
      }),
      { numRuns: runs(4) },
    );
  });

  insideTest("real packets: endpoints get connections by their weights", async (kernel) => {
    const port = await open(kernel, "IPv4", variant);
    const backend = createIptablesBackend(port, { counters: countersIn(kernel) });
    for (const { name, chiSquare, limit, strays } of await countWeighted(kernel.runner, backend)) {
      expect(chiSquare, name).toBeLessThan(limit);
      expect(strays, name).toBe(0);
    }
  });

  insideTest("real packets: clients with affinity over random histories of their service", async (kernel) => {
    const node = goldenNode(false);
    const crowd = await openRealCrowd(kernel.runner, node.addresses[0] ?? "");
    const port = await open(kernel, "IPv4", variant);
    const backendAnew = () => createIptablesBackend(port, { counters: countersIn(kernel) });
    const seed = Date.now();
    for (const history of fc.sample(crowdHistory(8), { numRuns: 2, seed })) {
      let backend = backendAnew();
      const followed = followCrowd(inRealTime(history), {
        ...crowd,
        // A list of xt_recent holds 100.
        clients: 90,
        options: plannerOptions(node),
        sharesFrontends: true,
        forgetsRenamed: true,
        apply: (plan, change) => backend.apply(plan, change),
        fullSync: (plan) => backend.sync(plan),
        restart: (plan) => {
          backend = backendAnew();
          return backend.sync(plan);
        },
      });
      await expect(followed, `seed ${seed}`).resolves.toBeUndefined();
      await backend.cleanup();
    }
    expect(crowd.connections()).toBeGreaterThan(300);
    crowd.close();
  });

  kernelTest("what another program does to rules of fixed names is seen and brought back", async (kernel) => {
    const counters = countersIn(kernel);
    const port = await open(kernel, "IPv6", variant);
    const pod = { address: "fd00:144::5", port: 8080, local: false };
    const web = clusterIPGroup("web", "fd00:10:96::10", [pod], { family: "IPv6" });
    const plan = planOf([web], nodePlan({ kind: "cidrs", cidrs: ["fd00:144::/48"] }));
    const backend = createIptablesBackend(port, { counters });
    await backend.sync(plan);
    const before = await saved(port);
    expect(await backend.difference(plan)).toBeUndefined();
    for (const edits of EDITS) {
      for (const edit of edits) await iptables(kernel, port, edit.split(" "));
      const what = edits.join("; ");
      const difference = await backend.difference(plan);
      expect(difference, what).toBeDefined();
      if (difference?.repaired === false) await backend.sync(plan);
      expect(compareRuleSets(before, await saved(port)), what).toEqual([]);
      expect(await backend.difference(plan), what).toBeUndefined();
    }
  });

  kernelTest("many services: batches, one change, cleanup", async (kernel) => {
    const counters = countersIn(kernel);
    const port = await open(kernel, "IPv4", variant);
    const backend = createIptablesBackend(port, { counters });
    const groups = Array.from({ length: 300 }, (_, i) =>
      clusterIPGroup(`s${i}`, `10.96.${1 + (i >> 8)}.${i & 255}`, endpoints(2, { from: i * 2 })),
    );
    const [plan, less] = [planOf(groups), planOf(groups.slice(1))];
    await backend.sync(plan);
    expect((await port.list("nat", "KUBE-SERVICES"))?.length).toBe(301);
    await backend.apply(less, changeOf(plan, less));
    await backend.apply(plan, changeOf(less, plan));
    expect((await port.chains("nat")).size).toBe(4 + 5 + 900);
    await backend.cleanup();
    expect([...(await port.chains("nat"))].sort()).toEqual(["INPUT", "OUTPUT", "POSTROUTING", "PREROUTING"]);
  });

  kernelTest("a match that the kernel has not, or not for this counter, is left out", async (kernel) => {
    const port = await open(kernel, "IPv4", variant);
    const backend = createIptablesBackend(port, { counters: async (names) => new Set(names) });
    const { refused } = await backend.sync(planOf([clusterIPGroup("web", "10.96.0.10", endpoints(1))]));
    expect((await port.list("nat", "KUBE-SERVICES"))?.length).toBe(2);
    expect(refused).toEqual(["iptables match nfacct: packet counters are disabled"]);
    expect(await port.list("mangle", "KUBE-PROXY-CANARY")).toEqual([]);
  });
});

function open({ runner }: TestKernel, family: IPFamily, variant: Variant): Promise<IptablesClient> {
  return openIptables(runner, { family, variant });
}

/** For `IptablesOptions.counters`; each is made once. */
function countersIn({ runner }: TestKernel) {
  const nfacct = createNfacct(runner);
  const made = new Set<string>();
  return async (names: readonly string[]) => {
    for (const name of names) if (!made.has(name) && (await nfacct.ensure(name)).ok) made.add(name);
    return new Set(names.filter((name) => made.has(name)));
  };
}

async function saved(port: IptablesClient): Promise<RuleSet> {
  return port.saveTables(["filter", "nat", "mangle"]);
}

async function iptables({ runner }: TestKernel, port: RulesPort, args: readonly string[]): Promise<void> {
  const tool = port.family === "IPv4" ? "iptables" : "ip6tables";
  await runner.run([`${tool}-${port.variant}`, "-w", "5", ...args]);
}

describe.each(["nft", "legacy"] as const)("on the real kernel, %s", (variant) => {
  kernelTest("every recording as kube-proxy left it", async (kernel) => {
    const counters = countersIn(kernel);
    // One after the other over what the one before has left: a full sync converges from any of them. What stays for
    // ever is the rule in kubelet's chain, which kube-proxy does not take back either.
    const ports = { IPv4: await open(kernel, "IPv4", variant), IPv6: await open(kernel, "IPv6", variant) };
    for (const recording of recordings) {
      const port = ports[recording.family];
      await sync(port, recording, counters);
      const again = new RecordingPort(port);
      await sync(again, recording, counters);
      expect(again.payloads.join("").match(/^:KUBE-(?:SEP|SVC|SVL|EXT|FW)-.*$/gm), "chains written anew").toBe(null);
      const states = await port.saveTables(TABLES);
      expect(
        recordedDifferences(recording, states, (_, chain) => chain !== "KUBE-FIREWALL"),
        `${recording.name} ${recording.family}`,
      ).toEqual([]);
    }
  });
});

kernelTest("a large set on the real kernel: comes, grows, shrinks and goes", async (kernel) => {
  const port = await open(kernel, "IPv4", "nft");
  let now = 0;
  const backend = createIptablesBackend(port, { clock: { monotonic: () => (now += 60_000) } });
  let plan = planWith(10);
  await backend.sync(plan);
  for (const count of [FLAT + 1_000, FLAT + 1_001, 3]) {
    const next = planWith(count, true);
    await backend.apply(next, changeOf(plan, next));
    plan = next;
  }
  const wanted = new Map([...(await fresh(plan))].filter(([table]) => table === "nat"));
  expect(compareRuleSets(wanted, new Map([["nat", await port.save("nat")]]))).toEqual([]);
  await backend.cleanup();
  expect([...(await port.chains("nat"))].filter((chain) => chain.startsWith("KUBE-"))).toEqual([]);
});

kernelTest(
  "in a user namespace, where the kernel takes small transactions only, 900 services are served and removed",
  async (kernel) => {
    const port = await open(kernel, "IPv4", "nft");
    const backend = createIptablesBackend(port);
    const plan = manyServices({ served: 500, without: 400 });
    expect(await syncUntilTaken(backend, plan)).toBeGreaterThan(0);
    for (const table of ["nat", "filter"] as const) {
      const wanted = new Map([...(await fresh(plan))].filter(([name]) => name === table));
      expect(compareRuleSets(wanted, new Map([[table, await port.save(table)]]))).toEqual([]);
    }
    await createIptablesBackend(await open(kernel, "IPv4", "nft")).cleanup();
    expect([...(await port.chains("nat"))].filter((chain) => chain.startsWith("KUBE-"))).toEqual([]);
  },
  { user: true },
);
