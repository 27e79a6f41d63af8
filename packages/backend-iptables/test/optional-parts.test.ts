import { FakeIptables } from "@fairlead/kernel/fake";
import { compareRuleSets, type RuleSet, renderRule } from "@fairlead/netfilter";
import { goldenNode } from "@fairlead/testkit";
import { dividingFilter, type SlotState, slotChanges, slotHistory, webState } from "@fairlead/testkit/histories";
import { changeOf, clusterIPGroup, endpoints, planOf } from "@fairlead/testkit/plans";
import { runs } from "@fairlead/tooling/runs";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { COUNTERS, createIptablesBackend } from "../src/index.ts";
import { openWorld, plannerOptions, whereabouts } from "./support/world.ts";

const counters = async () => new Set(COUNTERS);

function nodeWithout(lacking: Iterable<string>) {
  const fake = new FakeIptables({ family: "IPv4", lacking, nfacct: new Set(COUNTERS) });
  return { fake, backend: createIptablesBackend(fake, { counters }) };
}

function rulesWith(fake: FakeIptables, text: string): readonly string[] {
  const chains = [...fake.table("nat").chains.values(), ...fake.table("filter").chains.values()];
  return chains.flatMap(({ rules }) => rules.map(renderRule)).filter((rule) => rule.includes(text));
}

describe("a match that the kernel lacks costs what it is for", () => {
  test.each([["nfacct"], ["recent"], ["statistic"], ["nfacct", "recent", "statistic", "sctp"]])(
    "%s",
    async (...lacking) => {
      const world = openWorld();
      world.change([
        [1, webState({ type: "NodePort", affinity: true, endpoints: ["ready", "ready", "ready", "none"] })],
        [2, webState({ type: "NodePort", endpoints: ["ready", "ready", "none", "none"] })],
      ]);
      const { fake, backend } = nodeWithout(lacking);
      const { refused = [] } = await backend.sync(world.plan);
      const unserved = [...whereabouts(fake.ruleSet(), [1, 2])].filter(([, end]) => end.includes("unserved"));
      const whole = nodeWithout([]);
      await whole.backend.sync(world.plan);
      const expected = [...whereabouts(whole.fake.ruleSet(), [1, 2])].filter(([, end]) => end.includes("unserved"));
      expect(unserved.map(([packet]) => packet)).toEqual(expected.map(([packet]) => packet));
      for (const name of lacking) expect(rulesWith(fake, `-m ${name} `)).toEqual([]);
      // The metric counts these, and doctor says how many there are.
      const named = refused.flatMap((text) => /iptables match (\w+): /.exec(text)?.[1] ?? []);
      expect(named).toEqual(lacking);
      expect(await backend.difference(world.plan)).toBeUndefined();
    },
  );

  test("sctp: the other protocols are served, by full and by partial syncs", async () => {
    const { fake, backend } = nodeWithout(["sctp"]);
    const signal = clusterIPGroup("signal", "10.96.0.9", endpoints(2), { protocol: "SCTP", id: "signal/sctp" });
    const [one, two] = [planOf([clusterIPGroup("web", "10.96.0.10", endpoints(2))]), planOf([signal])];
    const both = planOf([...one.groups.values(), ...two.groups.values()]);
    const { refused } = await backend.sync(both);
    expect(refused).toEqual(["iptables match sctp: SCTP ports of Services are not served"]);
    expect(rulesWith(fake, "10.96.0.10/32").length).toBeGreaterThan(0);
    await backend.apply(one, changeOf(both, one));
    const report = await backend.apply(both, changeOf(one, both));
    expect(report.kind).toBe("partial");
    expect(rulesWith(fake, "10.96.0.9/32")).toEqual([]);
  });

  test("what is there again is used again, by the next full sync", async () => {
    const world = openWorld();
    world.change([[1, webState({ affinity: true })]]);
    const lacking = new Set(["recent"]);
    const { fake, backend } = nodeWithout(lacking);
    await backend.sync(world.plan);
    lacking.clear();
    const { refused } = await backend.sync(world.plan);
    expect(refused).toBeUndefined();
    expect(rulesWith(fake, "-m recent ").length).toBeGreaterThan(0);
  });

  test("of a kernel that refuses everything, the error is reported as it is", async () => {
    const lacking = new Set(["comment"]);
    const { backend } = nodeWithout(lacking);
    const world = openWorld();
    world.change([[1, webState({})]]);
    await expect(backend.sync(world.plan)).rejects.toThrow("comment");
    lacking.clear();
    expect(await backend.sync(world.plan)).toEqual({ kind: "full", objects: expect.anything() });
  });
});

const LISTS = [["10.244.0.0/16"], ["10.244.0.0/17", "10.245.0.0/16"], []] as const;
const options = (cidrs: readonly string[], resetStaleTCP = false) => ({ filter: dividingFilter(cidrs), resetStaleTCP });

test("whatever the history of services, CIDRs and resets, the kernel is as after a fresh start", async () => {
  const list = fc.constantFrom(...LISTS);
  await fc.assert(
    fc.asyncProperty(slotHistory, fc.array(list, { maxLength: 6 }), fc.boolean(), async (batches, lists, resets) => {
      const fake = new FakeIptables({ family: "IPv4" });
      const backend = createIptablesBackend(fake, {});
      const world = openWorld(options([], resets));
      await backend.sync(world.plan);
      for (const [at, batch] of batches.entries()) {
        const cidrs = lists[at];
        for (const change of [
          world.change(batch),
          cidrs && world.setOptions(plannerOptions(goldenNode(false), options(cidrs, resets))),
        ]) {
          if (change !== undefined) expect((await backend.apply(world.plan, change)).kind).toBe("partial");
        }
      }
      const other = new FakeIptables({ family: "IPv4" });
      const last = lists.slice(0, batches.length).at(-1) ?? [];
      const again = openWorld(options(last, resets));
      again.change(world.slots);
      await createIptablesBackend(other, {}).sync(again.plan);
      expect(compareRuleSets(other.ruleSet(), fake.ruleSet())).toEqual([]);
    }),
    { numRuns: runs(30) },
  );
});

const SLOTS = [1, 2, 3, 4, 5];

async function fresh(
  slots: Iterable<readonly [number, SlotState | undefined]>,
  resetStaleTCP: boolean,
): Promise<RuleSet> {
  const fake = new FakeIptables({ family: "IPv4" });
  const world = openWorld({ resetStaleTCP });
  world.change(slots);
  await createIptablesBackend(fake, {}).sync(world.plan);
  return fake.ruleSet();
}

test("new connections are treated as ever, whether others are reset or not", async () => {
  await fc.assert(
    fc.asyncProperty(slotChanges(SLOTS), async (steps) => {
      const [resetting, plain] = [await fresh(steps, true), await fresh(steps, false)];
      expect(whereabouts(resetting, SLOTS)).toEqual(whereabouts(plain, SLOTS));
    }),
    { numRuns: runs(14) },
  );
});

/** The rules about a service that has no endpoint for some clients. */
async function refusals(state: Partial<SlotState>, resetStaleTCP = true): Promise<readonly string[]> {
  const ruleSet = await fresh([[1, webState(state)]], resetStaleTCP);
  const chains = [...(ruleSet.get("filter")?.chains.values() ?? [])];
  return chains.flatMap(({ rules }) => rules.map(renderRule)).filter((rule) => rule.includes("endpoints"));
}

const NO_ENDPOINT = ["none", "none", "none", "none"] as const;
const ELSEWHERE = ["none", "none", "ready", "none"] as const;
const RESET = " ! --tcp-flags FIN,SYN,RST,ACK SYN -j REJECT --reject-with tcp-reset";

test("what is in the middle of a connection is reset before the rule that refuses, or drops", async () => {
  const port = '-p tcp -m comment --comment "default/slot-1:main has no endpoints"';
  const [address, onNode] = [`-d 10.96.3.1/32 ${port} -m tcp --dport 80`, `${port} -m addrtype --dst-type LOCAL`];
  expect(await refusals({ type: "NodePort", endpoints: NO_ENDPOINT })).toEqual([
    `${onNode} -m tcp --dport 30002${RESET}`,
    `${onNode} -m tcp --dport 30002 -j REJECT --reject-with icmp-port-unreachable`,
    `${address}${RESET}`,
    `${address} -j REJECT --reject-with icmp-port-unreachable`,
  ]);
  const local = address.replace("no endpoints", "no local endpoints");
  expect(await refusals({ internal: "Local", endpoints: ELSEWHERE })).toEqual([`${local}${RESET}`, `${local} -j DROP`]);
});

test("not with UDP, and not unless it is asked for", async () => {
  expect(await refusals({ protocol: "UDP", endpoints: NO_ENDPOINT })).toHaveLength(1);
  expect(await refusals({ endpoints: NO_ENDPOINT }, false)).toHaveLength(1);
});
