import type { ClusterShape } from "@fairlead/lab/provider/cluster";
import { lackingPrograms, lackText } from "@fairlead/lab/support/machine";
import { describe, expect, test } from "vitest";
import { type Actions, commandLine, type RawOptions, readOptions, UsageError } from "../src/command/options.ts";
import { planSpecs, readRequest } from "../src/command/plan.ts";
import { checkKeep } from "../src/command/run-folder.ts";
import type { Spec } from "../src/specs/spec.ts";

describe("options", () => {
  test("what is not given has its default", () => {
    expect(readOptions({})).toMatchObject({
      provider: "netns",
      cni: ["bridge"],
      modes: ["iptables"],
      nodes: 2,
      families: ["IPv4", "IPv6"],
      suites: ["services", "multi-cni"],
      keep: false,
    });
  });

  const wrong: readonly (readonly [RawOptions, RegExp])[] = [
    [{ cni: "bridge,,ptp" }, /--cni "bridge,,ptp"/],
    [{ cni: "ptp,ptp" }, /ptp is named twice/],
    [{ mode: "ebpf" }, /--mode ebpf: give one of iptables/],
    [{ nodes: "1" }, /--nodes 1: give a number from 2/],
    [{ nodes: "two" }, /--nodes two/],
    [{ ipFamily: "ipv5" }, /--ip-family ipv5: give one of ipv4/],
    [{ spec: "(" }, /--spec \(/],
    [{ record: true, spec: "DNS" }, /--record: only with whole suites/],
    [{ record: true, package: "watch" }, /--record: only with whole suites/],
    [{ hours: "0" }, /--hours 0: give a number above 0/],
    [{ hours: "a day" }, /--hours a day/],
    [{ seed: "-1" }, /--seed -1: give a whole number from 0/],
    [{ seed: "" }, /--seed : give a whole number/],
    [{ suite: "all" }, /--suite all: give one of services/],
    [{ kubernetes: "latest" }, /--kubernetes: Kubernetes latest/],
  ];
  test.each(wrong)("%j is refused", (raw, message) => {
    expect(() => readOptions(raw)).toThrow(UsageError);
    expect(() => readOptions(raw)).toThrow(message);
  });
});

describe("the command line", () => {
  async function asked(...args: readonly string[]): Promise<readonly unknown[]> {
    const calls: unknown[] = [];
    const actions: Actions = {
      run: async ({ kubernetes }) => void calls.push(["run", kubernetes]),
      down: async () => void calls.push(["down"]),
      binaries: async (kubernetes) => void calls.push(["binaries", kubernetes]),
      cost: async (spec) => void calls.push(["cost", spec]),
    };
    await commandLine(actions).parseAsync(["node", "e2e", ...args]);
    return calls;
  }

  test("an option behind a subcommand is the subcommand's", async () => {
    expect(await asked("binaries", "--kubernetes", "v1.37")).toEqual([["binaries", "v1.37"]]);
    expect(await asked("binaries")).toEqual([["binaries", "v1.36"]]);
    expect(await asked("--kubernetes", "v1.37")).toEqual([["run", "v1.37"]]);
    expect(await asked("down")).toEqual([["down"]]);
  });

  test("the suite cost has no cluster", async () => {
    expect(await asked("--suite", "cost", "--spec", "6.12")).toEqual([["cost", "6.12"]]);
    expect(await asked("--suite", "cost")).toEqual([["cost", undefined]]);
  });
});

test("what a machine lacks ends with one command that installs all of it", async () => {
  const programs = [
    { by: "ovn", program: "ovn-northd", debian: "ovn-central" },
    { by: "calico", program: "bird", debian: "bird2" },
    { by: "flannel", program: "bridge", debian: "iproute2" },
  ];
  const lacks = await lackingPrograms(programs, async (program) => program === "bridge");
  expect(lackText([...lacks, { what: "ovn has no IPv6" }, ...lacks])).toMatch(
    /\napt-get install -y --no-install-recommends ovn-central bird2$/,
  );
  expect(lackText(lacks).split("\n").slice(0, 2)).toEqual(["ovn needs ovn-northd", "calico needs bird"]);
  expect(lackText([{ what: "ovn has no IPv6" }])).toBe("ovn has no IPv6");
});

test("--keep is refused where nobody could look around", () => {
  const shape = { provider: "netns", mode: "ipvs", families: [], nodeNames: [], networks: [] };
  expect(() => checkKeep(shape)).not.toThrow();
  expect(() => checkKeep({ ...shape, ownKernel: true })).toThrow(/^--keep with --mode ipvs: .* User-Mode Linux/);
});

describe("requests", () => {
  const request = async (raw: RawOptions) => readRequest(readOptions(raw));

  test("a single network is ours", async () => {
    const { requests } = await request({ cni: "ptp" });
    expect(requests).toMatchObject([{ cni: ["ptp"], excluded: [], mode: "iptables" }]);
  });

  test("of networks without a load balancer of their own the last is left alone", async () => {
    const { requests } = await request({ cni: "bridge,ptp" });
    expect(requests).toMatchObject([{ excluded: ["ptp"] }]);
  });

  test("what is excluded can be said", async () => {
    const { requests } = await request({ cni: "bridge,ptp", excludeCni: "bridge" });
    expect(requests).toMatchObject([{ excluded: ["bridge"] }]);
  });

  test("a single network stays Fairlead's where pods elsewhere are excluded", async () => {
    const { provider, requests } = await request({ cni: "bridge", excludeCni: "elsewhere", ipFamily: "ipv4" });
    const shapes = await Promise.all(requests.map((one) => provider.shape(one)));
    expect(shapes).toMatchObject([{ elsewhere: { IPv4: "10.251.0.0/16" }, networks: [{ excluded: false }] }]);
  });

  test("beside a network with a load balancer of its own that one is left alone", async () => {
    const { requests } = await request({ cni: "ovn,flannel:host-gw,calico" });
    expect(requests).toMatchObject([{ cni: ["ovn", "flannel:host-gw", "calico"], excluded: ["ovn"] }]);
  });

  test("a variant is excluded by its network's name", async () => {
    const { requests } = await request({ cni: "calico,flannel:host-gw" });
    expect(requests).toMatchObject([{ excluded: ["flannel"] }]);
  });

  test("an overlay is one of those in deploy/", async () => {
    const { requests } = await request({ provider: "kind", overlay: "privileged" });
    expect(requests).toMatchObject([{ mode: "iptables", overlay: "privileged" }]);
  });

  test("each mode has a cluster", async () => {
    const { requests } = await request({ mode: "iptables,ipvs" });
    expect(requests.map(({ mode }) => mode)).toEqual(["iptables", "ipvs"]);
  });

  const wrong: readonly (readonly [RawOptions, RegExp])[] = [
    [{ provider: "cloud" }, /--provider cloud: give one of netns/],
    [{ cni: "weave" }, /--cni weave: netns has .*bridge/],
    [{ cni: "flannel:ipip" }, /--cni flannel:ipip: netns has .*flannel:host-gw/],
    [{ cni: "flannel,flannel:host-gw" }, /a cluster has one flannel/],
    [{ overlay: "privileged" }, /--overlay privileged: netns has no manifests/],
    [{ provider: "kind", overlay: "soft" }, /--overlay soft: kind has .*iptables, ipvs/],
    [{ cni: "bridge", excludeCni: "ptp" }, /--exclude-cni ptp: --cni does not have it/],
    [{ cni: "bridge", excludeCni: "bridge" }, /leaves Fairlead no network/],
  ];
  test.each(wrong)("%j is refused", async (raw, message) => {
    await expect(request(raw)).rejects.toThrow(message);
  });
});

describe("the plan", () => {
  const shape: ClusterShape = {
    provider: "netns",
    mode: "iptables",
    families: ["IPv4", "IPv6"],
    nodeNames: ["node-a", "node-b"],
    networks: [],
  };
  const run = async () => {};
  const specs: readonly Spec[] = [
    { name: "reach", suite: "services", run },
    { name: "v4 alone", suite: "services", unfit: (_, family) => (family === "IPv6" ? "no" : undefined), run },
    { name: "both", suite: "services", eachFamily: false, run },
    { name: "killed", suite: "faults", run },
  ];
  const plan = (pattern?: RegExp) =>
    planSpecs(specs, shape, { suites: ["services"], pattern }).map(({ title, unfit }) => [title, unfit]);

  test("a spec is run for each family, unless it takes both; what does not fit says why", () => {
    expect(plan()).toEqual([
      ["reach [IPv4]", undefined],
      ["reach [IPv6]", undefined],
      ["v4 alone [IPv4]", undefined],
      ["v4 alone [IPv6]", "no"],
      ["both", undefined],
    ]);
  });

  test("a pattern chooses by title", () => {
    expect(plan(/reach.*v6/i)).toEqual([["reach [IPv6]", undefined]]);
  });
});
