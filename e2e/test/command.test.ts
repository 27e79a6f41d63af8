import { mkdir, mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { DEFAULT_KUBERNETES } from "@fairlead/lab/control-plane/programs";
import type { ClusterShape } from "@fairlead/lab/provider/cluster";
import { lackingPrograms, lackText } from "@fairlead/lab/support/machine";
import { isRunning, processId } from "@fairlead/lab/support/processes";
import { ownPrefix } from "@fairlead/lab/support/run-inventory";
import { RUN_VARIABLE } from "@fairlead/lab/support/script";
import { execa } from "execa";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { type Actions, commandLine, type RawOptions, readOptions, UsageError } from "../src/command/options.ts";
import { type PlannedSpec, planSpecs, readRequest } from "../src/command/plan.ts";
import { listText, withoutToken } from "../src/command/run.ts";
import { checkKeep, leftovers, newRunId, openRunFolder, takeDown } from "../src/command/run-folder.ts";
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
      windows: async (seed) => void calls.push(["windows", seed]),
    };
    await commandLine(actions).parseAsync(["node", "e2e", ...args]);
    return calls;
  }

  test("the suites without a cluster", async () => {
    expect(await asked("--suite", "cost")).toEqual([["cost", undefined]]);
    expect(await asked("--suite", "cost", "--spec", "6.12")).toEqual([["cost", "6.12"]]);
    expect(await asked("--suite", "windows", "--seed", "7")).toEqual([["windows", "7"]]);
  });

  test("an option behind a subcommand is the subcommand's", async () => {
    expect(await asked("binaries", "--kubernetes", "v1.37")).toEqual([["binaries", "v1.37"]]);
    expect(await asked("binaries")).toEqual([["binaries", DEFAULT_KUBERNETES]]);
    expect(await asked("--kubernetes", "v1.37")).toEqual([["run", "v1.37"]]);
    expect(await asked("down")).toEqual([["down"]]);
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

test("--keep is refused where the user could not look around", () => {
  const shape = { provider: "netns", mode: "ipvs", families: [], nodeNames: [], networks: [] };
  expect(() => checkKeep(shape)).not.toThrow();
  expect(() => checkKeep({ ...shape, ownKernel: true })).toThrow(/^--keep with --mode ipvs: .* User-Mode Linux/);
});

describe("requests", () => {
  const request = async (raw: RawOptions) => readRequest(readOptions(raw));

  test.each([
    ["a single network is ours", { cni: "ptp" }, { cni: ["ptp"], excluded: [], mode: "iptables" }],
    ["of several the last is excluded", { cni: "bridge,ptp" }, { excluded: ["ptp"] }],
    [
      "one with a load balancer of its own is excluded, wherever it stands",
      { cni: "ovn,flannel:host-gw,calico" },
      { cni: ["ovn", "flannel:host-gw", "calico"], excluded: ["ovn"] },
    ],
    ["a variant is excluded by its network's name", { cni: "calico,flannel:host-gw" }, { excluded: ["flannel"] }],
    [
      "an overlay is one of those in deploy/",
      { provider: "kind", overlay: "privileged" },
      { mode: "iptables", overlay: "privileged" },
    ],
  ])("%s", async (_what, raw, wanted) => {
    expect((await request(raw)).requests).toMatchObject([wanted]);
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
    { name: "v4 only", suite: "services", unfit: (_, family) => (family === "IPv6" ? "no" : undefined), run },
    { name: "both", suite: "services", eachFamily: false, run },
    { name: "killed", suite: "faults", run },
  ];
  const plan = (pattern?: RegExp) =>
    planSpecs(specs, shape, { suites: ["services"], pattern }).map(({ title, unfit }) => [title, unfit]);

  test("a spec is run for each family, unless it takes both; what does not fit says why", () => {
    expect(plan()).toEqual([
      ["reach [IPv4]", undefined],
      ["reach [IPv6]", undefined],
      ["v4 only [IPv4]", undefined],
      ["v4 only [IPv6]", "no"],
      ["both", undefined],
    ]);
  });

  test("a pattern chooses by title", () => {
    expect(plan(/reach.*v6/i)).toEqual([["reach [IPv6]", undefined]]);
  });
});

const planned = (name: string, more: Partial<Spec> = {}, unfit?: string): PlannedSpec => ({
  spec: { name, suite: "services", run: async () => undefined, ...more },
  family: "IPv4",
  title: `${name} [IPv4]`,
  unfit,
});

test("a list has each spec and what it needs", () => {
  const specs = [
    planned("hairpin"),
    planned("drain", { byItself: true }),
    planned("second network", {}, "one network only"),
  ];
  expect(listText(specs).split("\n")).toEqual([
    "  services          hairpin [IPv4]",
    "  services          drain [IPv4] (runs by itself)",
    "  services          second network [IPv4] (not here: one network only)",
  ]);
});

describe("down", () => {
  let parent: string;

  beforeEach(async () => {
    parent = await mkdtemp(join(tmpdir(), "fairlead-down-"));
  });

  afterEach(() => rm(parent, { recursive: true, force: true }));

  const down = (cache = parent, ofMachine = async (): Promise<readonly string[]> => []) =>
    takeDown(parent, cache, ofMachine);

  /** A run whose process is gone; another one has its number now: this one. */
  async function leftover(id: string): Promise<void> {
    const folder = join(parent, id);
    await mkdir(folder);
    await writeFile(
      join(folder, "run.json"),
      JSON.stringify({ owner: { pid: process.pid, startTime: "1" }, kept: false }),
    );
  }

  test("nothing there: says so", async () => {
    expect(await down()).toEqual(["nothing is left of earlier runs"]);
  });

  test("control groups of a run whose folder is gone are removed", async () => {
    const removed = ["fairlead-e2e-run-old: its control groups removed"];
    expect(await down(parent, async () => removed)).toEqual(removed);
  });

  test("a run at work is skipped", async () => {
    const folder = await openRunFolder(newRunId(), parent);
    expect(await down()).toEqual([expect.stringContaining("skipped")]);
    expect(await readdir(parent)).toEqual([folder.id]);
  });

  test("a run whose process number another program has now is removed, its processes with it, and no others", async () => {
    const id = "fairlead-e2e-run-old";
    await leftover(id);
    const theirs = execa("sleep", ["60"], { env: { [RUN_VARIABLE]: id }, reject: false });
    const others = execa("sleep", ["60"], { env: { [RUN_VARIABLE]: `${id}er` }, reject: false });
    const other = await processId(others.pid ?? 0);
    expect(await down()).toEqual([`${id}: removed, with 1 processes`]);
    expect((await theirs).signal).toBe("SIGKILL");
    expect(await isRunning(other)).toBe(true);
    expect(await readdir(parent)).toEqual([]);
    others.kill("SIGKILL");
    await others;
  });

  test("a run of pnpm e2e is found in the folder of that command", async () => {
    const command = join(parent, await ownPrefix("fairlead-e2e"));
    await mkdir(command);
    const { id } = await openRunFolder(newRunId(), command);
    expect(await down()).toEqual([`${id}: at work (process ${process.pid}), skipped`]);
  });

  test("a folder that says nothing of its run is not touched", async () => {
    await mkdir(join(parent, "fairlead-e2e-run-strange"));
    await mkdir(join(parent, "other-program"));
    expect(await down()).toEqual(["nothing is left of earlier runs"]);
    expect((await readdir(parent)).sort()).toEqual(["fairlead-e2e-run-strange", "other-program"]);
  });

  test("folders of processes that are gone are removed, also where programs are built; those of the living stay", async () => {
    const gone = `${process.pid}-1`;
    const cache = join(parent, "cache");
    await mkdir(join(cache, "programs", `.build-${gone}-abc`), { recursive: true });
    await mkdir(join(cache, "programs", `${await ownPrefix(".build")}-abc`));
    for (const name of ["e2e", "tests"]) await mkdir(join(parent, `fairlead-${name}-${gone}-abc`));
    await mkdir(join(parent, `${await ownPrefix("fairlead-e2e")}-abc`));
    expect(new Set(await down(cache))).toEqual(
      new Set(
        [`fairlead-e2e-${gone}-abc`, `fairlead-tests-${gone}-abc`, `.build-${gone}-abc`].map(
          (name) => `${name}: removed`,
        ),
      ),
    );
    expect((await readdir(parent)).sort()).toEqual(["cache", `${await ownPrefix("fairlead-e2e")}-abc`]);
    expect(await readdir(join(cache, "programs"))).toEqual([`${await ownPrefix(".build")}-abc`]);
  });

  test("tests have a temporary folder of their own, which is not a leftover", async () => {
    const [, pid, startTime = ""] = /\/fairlead(?:-tests)?-(\d+)-(\d+)$/.exec(tmpdir()) ?? [];
    expect(await isRunning({ pid: Number(pid), startTime })).toBe(true);
  });
});

test("a process and a folder that a run leaves are named, until they are gone", async () => {
  const id = newRunId();
  const child = execa("sleep", ["60"], { env: { [RUN_VARIABLE]: id }, reject: false });
  const folder = await mkdtemp(join(tmpdir(), `${id}-`));
  expect(await leftovers(id, 0)).toEqual([`left behind: ${child.pid} sleep 60`, `left behind: ${basename(folder)}`]);
  child.kill("SIGKILL");
  await child;
  await rm(folder, { recursive: true });
  expect(await leftovers(id)).toEqual([]);
});

test("what a failure keeps and prints is without the cluster's token", () => {
  const text = 'env TOKEN=s3cret vitest: exit code 1; Authorization: "Bearer s3cret"';
  expect(withoutToken(text, { apiServer: { token: "s3cret" } })).toBe(
    'env TOKEN=[token] vitest: exit code 1; Authorization: "Bearer [token]"',
  );
});
