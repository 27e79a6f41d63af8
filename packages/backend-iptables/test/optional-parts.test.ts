import { FakeIptables } from "@fairlead/kernel/fake";
import { renderRule } from "@fairlead/netfilter";
import { webState } from "@fairlead/testkit/histories";
import { describe, expect, test } from "vitest";
import { COUNTERS, createIptablesBackend } from "../src/index.ts";
import { changeOf, clusterIPGroup, endpoints, planOf } from "./support/groups.ts";
import { openWorld, whereabouts } from "./support/world.ts";

const counters = async () => new Set(COUNTERS);

/** A node whose kernel has the counters, and lacks matches. */
function nodeWithout(lacking: Iterable<string>) {
  const fake = new FakeIptables({ family: "IPv4", lacking, nfacct: new Set(COUNTERS) });
  const problems: string[] = [];
  const backend = createIptablesBackend(fake, { counters, onProblem: (problem) => problems.push(problem) });
  return { fake, backend, problems };
}

/** The rules of nat that name a text. */
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
      const { fake, backend, problems } = nodeWithout(lacking);
      const { refused = [] } = await backend.sync(world.plan);
      const unserved = [...whereabouts(fake.ruleSet(), [1, 2])].filter(([, end]) => end.includes("unserved"));
      const whole = nodeWithout([]);
      await whole.backend.sync(world.plan);
      const expected = [...whereabouts(whole.fake.ruleSet(), [1, 2])].filter(([, end]) => end.includes("unserved"));
      expect(unserved.map(([packet]) => packet)).toEqual(expected.map(([packet]) => packet));
      for (const name of lacking) expect(rulesWith(fake, `-m ${name} `)).toEqual([]);
      const named = [...problems, ...refused].flatMap((text) => /iptables match (\w+): /.exec(text)?.[1] ?? []);
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

  test("a kernel that refuses everything is told as it is", async () => {
    const lacking = new Set(["comment"]);
    const { backend, problems } = nodeWithout(lacking);
    const world = openWorld();
    world.change([[1, webState({})]]);
    await expect(backend.sync(world.plan)).rejects.toThrow("comment");
    expect(problems).toEqual([]);
    lacking.clear();
    expect((await backend.sync(world.plan)).kind).toBe("full");
  });
});
