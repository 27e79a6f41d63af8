import { FakeIptables } from "@fairlead/kernel/fake";
import { compareRuleSets } from "@fairlead/netfilter";
import { changeOf, clusterIPGroup, endpoints, planOf } from "@fairlead/testkit/plans";
import { describe, expect, test, vi } from "vitest";
import { createIptablesBackend, type IptablesOptions } from "../src/index.ts";
import { RecordingPort } from "./support/recording-port.ts";

const NODE_PORT = "--dport 30080";
const ENDED = "has a rule of another program that ends it before its own rules";
const PROXY = { verdict: "proxy", set: "cluster", masquerade: true } as const;
const web = clusterIPGroup("web", "10.96.0.10", endpoints(2));
const withNodePort = {
  ...web,
  frontends: [
    ...web.frontends,
    {
      kind: "node-port",
      reach: "external",
      at: "node-port",
      port: 30_080,
      policy: "Cluster",
      treatments: { pod: PROXY, node: PROXY, outside: PROXY },
    } as const,
  ],
};
const unserved = clusterIPGroup("unserved", "10.96.0.11", []);
const plan = planOf([withNodePort, unserved]);

/** After a full sync; `listed`: the readings of chains since. */
async function synced(options: IptablesOptions = {}) {
  const kernel = new FakeIptables({ family: "IPv4", glances: true });
  const port = new RecordingPort(kernel);
  const backend = createIptablesBackend(port, options);
  await backend.sync(plan);
  const listed = vi.spyOn(kernel, "texts");
  const meddle = (table: string, ...lines: readonly string[]) =>
    kernel.meddle(`*${table}\n${lines.join("\n")}\nCOMMIT\n`);
  return { kernel, backend, meddle, listed, payloads: port.payloads };
}

async function lines(kernel: FakeIptables, table: "nat" | "filter", chain: string): Promise<readonly string[]> {
  return (await kernel.texts(table, [chain])).get(chain) ?? [];
}

describe("a rule of ours", () => {
  test.each<readonly ["nat" | "filter", string, string, (rules: readonly string[]) => readonly string[]]>([
    ["nat", "KUBE-SERVICES", "lacks rules", () => []],
    ["nat", "KUBE-SERVICES", "lacks rules", ([, ...rules]) => rules],
    ["nat", "KUBE-NODEPORTS", "lacks rules", () => []],
    ["nat", "KUBE-NODEPORTS", "lacks rules", (rules) => rules.map((rule) => rule.replace(NODE_PORT, "--dport 30081"))],
    ["nat", "KUBE-POSTROUTING", "lacks rules", ([, ...rules]) => rules],
    ["nat", "KUBE-MARK-MASQ", "lacks rules", () => ["-j MARK --set-xmark 0x8000/0x8000"]],
    ["nat", "KUBE-POSTROUTING", "has its rules in another order", (rules) => rules.toReversed()],
    ["nat", "KUBE-SERVICES", "has its rules in another order", (rules) => rules.toReversed()],
    ["nat", "KUBE-SERVICES", ENDED, (rules) => ["-j RETURN", ...rules]],
    ["nat", "KUBE-SERVICES", ENDED, (rules) => ["-m comment --comment theirs -j ACCEPT", ...rules]],
    ["nat", "KUBE-POSTROUTING", ENDED, ([first = "", ...rules]) => [first, "-j MASQUERADE", ...rules]],
    ["filter", "KUBE-SERVICES", "lacks rules", () => []],
    ["filter", "KUBE-SERVICES", ENDED, (rules) => ["-j DROP", ...rules]],
    ["filter", "KUBE-FORWARD", "lacks rules", (rules) => rules.slice(1)],
    ["filter", "KUBE-FIREWALL", "lacks rules", () => []],
    ["filter", "FORWARD", "lacks rules", (rules) => rules.slice(1)],
    ["nat", "PREROUTING", "lacks rules", () => []],
  ])("%s %s %s: that chain is written again, and no other", async (table, chain, difference, edit) => {
    const { kernel, backend, meddle, payloads } = await synced();
    expect(await backend.difference(plan)).toBeUndefined();
    const before = kernel.ruleSet();
    payloads.length = 0;
    const edited = edit(await lines(kernel, table, chain)).map((rule) => `-A ${chain} ${rule}`);
    await meddle(table, `-F ${chain}`, ...edited);
    expect(await backend.difference(plan)).toEqual({
      what: [`chain ${chain} of the ${table} table ${difference}`],
      repaired: true,
    });
    expect(compareRuleSets(before, kernel.ruleSet())).toEqual([]);
    expect([...payloads.join("").matchAll(/^(?::|-[AID] )(\S+)/gm)].every(([, name]) => name === chain)).toBe(true);
    expect(await backend.difference(plan)).toBeUndefined();
  });

  test.each([
    ["of several chains", ["-F KUBE-SERVICES", "-F KUBE-POSTROUTING"]],
    ["in all chains, by a flush", ["-F"]],
  ])("missing %s: a full sync brings it back", async (_, edits) => {
    const { kernel, backend, meddle } = await synced();
    const before = kernel.ruleSet();
    if (edits[0] === "-F") kernel.flush("nat");
    else await meddle("nat", ...edits);
    expect(await backend.difference(plan)).toMatchObject({ repaired: false });
    await backend.sync(plan);
    expect(compareRuleSets(before, kernel.ruleSet())).toEqual([]);
    expect(await backend.difference(plan)).toBeUndefined();
  });

  test("missing where a service's chain is gone as well: a full sync brings both back, and a problem says why", async () => {
    const problems: string[] = [];
    const { kernel, backend, meddle } = await synced({ onProblem: (problem) => problems.push(problem) });
    const before = kernel.ruleSet();
    const [service] = [...kernel.table("nat").chains.keys()].filter((name) => name.startsWith("KUBE-EXT-"));
    await meddle("nat", "-F KUBE-NODEPORTS", `-F ${service}`, `-X ${service}`);
    expect(await backend.difference(plan)).toMatchObject({ repaired: false });
    expect(problems).toEqual([expect.stringContaining("and restoring only that failed; starting a full sync: ")]);
    await backend.sync(plan);
    expect(compareRuleSets(before, kernel.ruleSet())).toEqual([]);
  });

  test("missing again at the next check: a full sync, whose caller backs off", async () => {
    const { backend, meddle } = await synced();
    const repaired: (boolean | undefined)[] = [];
    for (let time = 0; time < 3; time++) {
      await meddle("nat", "-F KUBE-SERVICES");
      repaired.push((await backend.difference(plan))?.repaired);
    }
    expect(repaired).toEqual([true, false, false]);
    await backend.sync(plan);
    expect(await backend.difference(plan)).toBeUndefined();
    await meddle("nat", "-F KUBE-SERVICES");
    expect((await backend.difference(plan))?.repaired).toBe(true);
  });

  test.each(["mangle", "filter", "nat"] as const)("the canary of %s is gone", async (table) => {
    const { backend, meddle } = await synced();
    await meddle(table, "-X KUBE-PROXY-CANARY");
    expect((await backend.difference(plan))?.what).toEqual([
      `chain KUBE-PROXY-CANARY of the ${table} table is not there`,
    ]);
  });

  test("what differs is named in all tables, so that a second difference is not taken for the first", async () => {
    const { backend, meddle } = await synced();
    await meddle("filter", "-F KUBE-FORWARD");
    await meddle("nat", "-F KUBE-SERVICES");
    expect((await backend.difference(plan))?.what).toEqual([
      "chain KUBE-FORWARD of the filter table lacks rules",
      "chain KUBE-SERVICES of the nat table lacks rules",
    ]);
  });

  test("in the words of another version of the tools it is the same", async () => {
    const { kernel, backend, meddle } = await synced();
    const [rule = ""] = await lines(kernel, "nat", "KUBE-MARK-MASQ");
    expect(rule).toContain("--set-xmark 0x4000/0x4000");
    const texts = kernel.texts.bind(kernel);
    kernel.texts = async (table, chains) =>
      new Map(
        [...(await texts(table, chains))].map(([chain, rules]) => [
          chain,
          rules.map((text) => text.replace("--set-xmark 0x4000/0x4000", "--or-mark 0x4000")),
        ]),
      );
    await meddle("nat", "-A INPUT -j RETURN");
    expect(await backend.difference(plan)).toBeUndefined();
  });
});

describe("rules of others", () => {
  test.each<readonly ["nat" | "filter", string]>([
    ["nat", "-A INPUT -j RETURN"],
    ["nat", "-I PREROUTING -j ACCEPT"],
    ["nat", "-A KUBE-SERVICES -j RETURN"],
    ["nat", "-I KUBE-SERVICES -d 10.9.9.9/32 -j RETURN"],
    ["nat", "-I KUBE-SERVICES -m comment --comment counts"],
    ["filter", "-I INPUT -j DROP"],
    ["filter", "-A KUBE-PROXY-FIREWALL -j DROP"],
    ["filter", "-I KUBE-FIREWALL -j DROP"],
  ])("%s %s: stay", async (table, line) => {
    const { backend, meddle, listed } = await synced();
    await meddle(table, line);
    expect(await backend.difference(plan)).toBeUndefined();
    listed.mockClear();
    expect(await backend.difference(plan)).toBeUndefined();
    expect(listed).not.toHaveBeenCalled();
  });
});

describe("what the kernel says of a table", () => {
  test("as it was when it was right: nothing is listed", async () => {
    const { backend, listed } = await synced();
    expect(await backend.difference(plan)).toBeUndefined();
    expect(listed.mock.calls.map(([table]) => table)).toEqual(["mangle", "filter", "nat"]);
    expect(await backend.difference(plan)).toBeUndefined();
    expect(listed).toHaveBeenCalledTimes(3);
  });

  test("after a change of its own each table is listed once, not after a change that comes to nothing", async () => {
    const { backend, listed } = await synced();
    const less = planOf([withNodePort]);
    await backend.difference(plan);
    await backend.apply(less, changeOf(plan, less));
    listed.mockClear();
    for (let time = 0; time < 2; time++) expect(await backend.difference(less)).toBeUndefined();
    expect(listed.mock.calls.map(([table]) => table)).toEqual(["mangle", "filter", "nat"]);
    await backend.apply(less, changeOf(less, less));
    expect(await backend.difference(less)).toBeUndefined();
    expect(listed).toHaveBeenCalledTimes(3);
  });

  test("what was not right is looked at again, though nothing has changed since", async () => {
    const { backend, meddle } = await synced();
    await meddle("nat", "-F KUBE-SERVICES");
    await meddle("nat", "-F KUBE-POSTROUTING");
    for (let time = 0; time < 2; time++) expect(await backend.difference(plan)).toBeDefined();
  });
});
