import type { ServicePortGroup } from "@fairlead/core";
import { FakeIptables } from "@fairlead/kernel/fake";
import { compareRuleSets, parseRestore, type Rule, renderRule, ruleKey } from "@fairlead/netfilter";
import { recordedScenarios, TestCluster } from "@fairlead/testkit";
import { changeOf, clusterIPGroup, endpoints, nodePlan, planOf } from "@fairlead/testkit/plans";
import { runs } from "@fairlead/tooling/runs";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { COUNTERS, createIptablesBackend, requiredSysctls } from "../src/index.ts";
import { RecordingPort } from "./support/recording-port.ts";
import { plannerOptions } from "./support/world.ts";

describe("rule budget: rules in nat besides the 5 of the frame, and in filter besides its 4", () => {
  // The same as kube-proxy writes; a rule more for each service or endpoint is felt in large clusters.
  test.each([
    { services: 1, endpoints: 1, nat: 5, filter: 0 },
    { services: 100, endpoints: 1, nat: 500, filter: 0 },
    { services: 100, endpoints: 5, nat: 1700, filter: 0 },
    { services: 100, endpoints: 0, nat: 0, filter: 100 },
  ])("$services services with $endpoints endpoints", async (size) => {
    const groups = Array.from({ length: size.services }, (_, i) =>
      clusterIPGroup(`s${i}`, `10.96.1.${i}`, endpoints(size.endpoints, { from: i * size.endpoints })),
    );
    const report = await createIptablesBackend(new FakeIptables({ family: "IPv4" })).sync(planOf(groups));
    expect(report.objects).toMatchObject({ nat: { total: 5 + size.nat }, filter: { total: 4 + size.filter } });
  });

  test("one load balancer under Local with ranges", async () => {
    const scenario = recordedScenarios().find(({ name }) => name === "34-lb-local-source-ranges");
    if (scenario === undefined) throw new Error("the recording is gone");
    const cluster = new TestCluster(plannerOptions(scenario.node));
    cluster.put(...scenario.objects.filter(({ metadata }) => metadata.name.startsWith("lbr")));
    cluster.replan();
    const report = await createIptablesBackend(new FakeIptables({ family: "IPv4" })).sync(cluster.plan("IPv4"));
    // dispatch 3 + node port 1, KUBE-SVC 4, -SVL 1, -EXT 4, -FW 5, -SEP 6; gates 2, health check 1
    expect(report.objects).toMatchObject({ nat: { total: 5 + 24 }, filter: { total: 4 + 3 } });
  });
});

describe("what is sent", () => {
  test("is in the form that the kernel reads back, but for the rounding of probabilities", async () => {
    for (const { objects, node } of recordedScenarios()) {
      const cluster = new TestCluster(plannerOptions(node));
      cluster.put(...objects);
      cluster.replan();
      for (const family of ["IPv4", "IPv6"] as const) {
        const port = new RecordingPort(new FakeIptables({ family, nfacct: new Set(COUNTERS) }));
        const counters = async () => new Set(COUNTERS);
        await createIptablesBackend(port, { counters }).sync(cluster.plan(family));
        for (const text of port.payloads) {
          for (const line of text.split("\n")) expectCanonical(line, family);
        }
      }
    }
  });

  test("hostile names stay inside their comments", async () => {
    const name = fc.string({ unit: "binary", minLength: 1, maxLength: 300 });
    await fc.assert(
      fc.asyncProperty(name, fc.integer({ min: 0, max: 3 }), async (hostile, count) => {
        const benign = clusterIPGroup("web", "10.96.0.10", endpoints(count));
        const group = { ...benign, name: hostile };
        const sent = await payloads(group);
        const lines = sent.flatMap((text) => text.split("\n"));
        expect(lines).toHaveLength((await payloads(benign)).flatMap((text) => text.split("\n")).length);
        for (const line of lines) expect(line.replace(/"(?:[^"\\]|\\.)*"/g, "")).toMatch(/^[\x21-\x7e ]*$/);
        for (const text of sent) expect(() => parseRestore(text)).not.toThrow();
      }),
      { numRuns: runs(50) },
    );
    expect.hasAssertions();
  });

  test('a name made of quotes, options and line ends: "web\\n-A INPUT -j ACCEPT"', async () => {
    const hostile = 'web"\n-A INPUT -j ACCEPT\nCOMMIT\n*filter\n-F INPUT " --comment \\" -j DROP';
    const [text = ""] = await payloads({ ...clusterIPGroup("web", "10.96.0.10", []), name: hostile });
    const appended = parseRestore(text).flatMap(({ commands }) =>
      commands.map(({ kind, chain }) => `${kind} ${chain}`),
    );
    expect(appended).not.toContain("append INPUT");
    expect(appended).not.toContain("flush INPUT");
  });
});

test("a group that only changes its name's case, port or protocol is other chains", async () => {
  const fake = new FakeIptables({ family: "IPv4" });
  const backend = createIptablesBackend(fake);
  const tcp = planOf([clusterIPGroup("web", "10.96.0.10", endpoints(1))]);
  const udp = planOf([clusterIPGroup("web", "10.96.0.10", endpoints(1), { protocol: "UDP", id: "default/web/udp" })]);
  await backend.sync(tcp);
  const before = fake.ruleSet();
  await backend.apply(udp, changeOf(tcp, udp));
  expect(compareRuleSets(before, fake.ruleSet())).not.toEqual([]);
  await backend.apply(tcp, changeOf(udp, tcp));
  expect(compareRuleSets(before, fake.ruleSet())).toEqual([]);
});

test("route_localnet is asked for where node ports answer on 127.0.0.1", () => {
  const lists = (...addresses: string[]) => nodePlan(undefined, { kind: "list", addresses });
  const asks = (family: "IPv4" | "IPv6", node = nodePlan(), localhostNodePorts = true) =>
    requiredSysctls({ family, localhostNodePorts }, node).map(({ name, value }) => `${name}=${value}`);
  expect(asks("IPv4")).toEqual(["net.ipv4.conf.all.route_localnet=1"]);
  expect(asks("IPv4", lists("127.0.0.1"))).toEqual(["net.ipv4.conf.all.route_localnet=1"]);
  expect(asks("IPv4", lists("10.201.0.10"))).toEqual([]);
  expect(asks("IPv4", nodePlan(), false)).toEqual([]);
  expect(asks("IPv6")).toEqual([]);
});

test.each([-1, 32, 1.5])("masqueradeBit %d is refused", (masqueradeBit) => {
  expect(() => createIptablesBackend(new FakeIptables({ family: "IPv4" }), { masqueradeBit })).toThrow(
    `masqueradeBit is ${masqueradeBit}`,
  );
});

function expectCanonical(line: string, family: "IPv4" | "IPv6"): void {
  const rule = ruleOf(line, family);
  if (rule === undefined || rule.matches.some(({ kind }) => kind === "statistic")) return;
  expect(line.replace(/^-[AI] \S+ (?:\d+ )?/, "")).toBe(ruleKey(rule));
  expect(renderRule(rule)).toBe(ruleKey(rule));
}

function ruleOf(line: string, family: "IPv4" | "IPv6"): Rule | undefined {
  if (!/^-[AI]/.test(line)) return undefined;
  const [command] = parseRestore(`*nat\n${line}\nCOMMIT\n`, { family })[0]?.commands ?? [];
  return command !== undefined && "rule" in command ? command.rule : undefined;
}

async function payloads(group: ServicePortGroup): Promise<string[]> {
  const port = new RecordingPort(new FakeIptables({ family: "IPv4", variant: "legacy" }));
  await createIptablesBackend(port).sync(planOf([group]));
  return port.payloads;
}
