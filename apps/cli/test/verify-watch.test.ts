import { VirtualClock } from "@fairlead/base/testing";
import type { ForwardingPlan } from "@fairlead/core";
import { type DifferenceEvent, factsOf, ownRules, savedRules } from "@fairlead/inspect";
import type { KernelReader } from "@fairlead/kernel";
import { FakeNodeAddresses } from "@fairlead/kernel/fake";
import { goldenPlannerOptions, goldenScenario, service, TestCluster } from "@fairlead/testkit";
import { beforeEach, describe, expect, test } from "vitest";
import { WatchedFamily } from "../src/commands/verify/watch/family.ts";
import { type SeenMode, seenMode } from "../src/commands/verify/watch/kernel.ts";
import { differencesPage, metricsText, watchLog } from "../src/commands/verify/watch/report.ts";
import { watchKernel } from "../src/commands/verify/watch/run.ts";
import { fairlead } from "./support/run.ts";

const GRACE = 5_000;
/** Within this time damage is reported, whatever the moment. */
const REPORTED_MS = 10_000;
const scenario = goldenScenario("09-loadbalancer");

/** A node that kube-proxy serves in iptables mode, as text that a test may change. */
class SeenNode {
  readonly clock = new VirtualClock();
  readonly news: DifferenceEvent[] = [];
  readonly warnings: string[] = [];
  readonly log = { info: () => {}, warn: (message: string) => void this.warnings.push(message) };
  readonly cluster = new TestCluster(goldenPlannerOptions(scenario.node, factsOf("iptables").semantics));
  readonly stop = new AbortController();
  text = scenario.iptables;
  generation: number | undefined;
  failure: Error | undefined;
  /** What the next reading ends with; undefined: it succeeds. */
  failsOnce: (() => Error) | undefined;
  reads = 0;

  readonly mode = {
    name: "iptables",
    isHere: async () => true,
    generation: async () => this.generation,
    read: async (_kernel, family, environment) => {
      const failure = this.failure ?? this.failsOnce?.();
      this.failsOnce = undefined;
      if (failure !== undefined) throw failure;
      this.reads += 1;
      return { ruleSet: ownRules(savedRules(this.text, family)), environment };
    },
  } satisfies SeenMode;

  readonly kernel = {
    addresses: new FakeNodeAddresses([address("127.0.0.1", "host"), address("10.201.0.10", "global")]),
    rules: never,
    rulesGeneration: never,
    generation: never,
    hasNftTable: async () => false,
    nftTable: never,
    servers: never,
    sets: never,
    addressesOf: async () => undefined,
    setting: never,
    close: async () => {},
  };

  readonly family = new WatchedFamily({
    family: "IPv4",
    mode: this.mode,
    kernel: this.kernel,
    grace: GRACE,
    clock: this.clock,
    onNews: (news) => this.news.push(news),
  });

  get plan(): ForwardingPlan {
    return this.cluster.plan("IPv4");
  }

  async begin(): Promise<void> {
    this.cluster.put(...scenario.objects);
    this.cluster.replan();
    this.family.take(this.plan, undefined);
    const { kernel, mode, clock, log } = this;
    void watchKernel({ kernel, mode, families: [this.family], clock, log, onOtherMode: () => {} }, this.stop.signal);
    await this.pass(2_000);
  }

  /** Looks take turns of the event loop, which the virtual clock knows nothing of. */
  async pass(milliseconds: number): Promise<void> {
    for (let passed = 0; passed < milliseconds; passed += 500) {
      await this.clock.advance(500);
      for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve));
    }
  }

  reported(): string[] {
    return this.news.map(({ kind, subject, differences: [first] }) =>
      `${kind} ${subject.name} ${first?.kind ?? ""}`.trim(),
    );
  }
}

function address(text: string, scope: string) {
  return { family: "IPv4", address: text, prefixLength: 24, interface: "eth0", scope, up: true } as const;
}

async function never(): Promise<never> {
  throw new Error("this test does not use it");
}

let node = new SeenNode();

beforeEach(async () => {
  node = new SeenNode();
  await node.begin();
  return () => node.stop.abort();
});

describe("verify --watch alongside what kube-proxy wrote", () => {
  test("reports nothing while nothing differs", async () => {
    await node.pass(60_000);
    expect(node.reported()).toEqual([]);
    expect(node.family.round?.services).toBe(2);
  });

  test("reports within ten seconds that it differs, and that it agrees again", async () => {
    const whole = node.text;
    node.text = whole.replaceAll("-d 10.96.1.9/32", "-d 10.96.1.8/32");
    await node.pass(GRACE - 1_000);
    expect(node.reported()).toEqual([]);
    await node.pass(REPORTED_MS - GRACE + 1_000);
    expect(node.reported()).toContain("differs default/lb missing");
    node.text = whole;
    await node.pass(3_000);
    expect(node.reported().at(-1)).toMatch(/^agrees /);
    expect(node.family.suspicions).toEqual([]);
  });

  test("looks again when the grace ends, not when it would anyhow", async () => {
    await node.pass(500);
    node.text = node.text.replaceAll("0.50000000000", "0.25000000000");
    await node.pass(GRACE + 2_000);
    expect(node.reported()).toEqual(["differs default/lb shares"]);
  });

  test("a service that kube-proxy does not know yet is reported after the grace, one that it keeps as well", async () => {
    const web = service("web", { clusterIPs: ["10.96.1.99"], ports: [{ port: 80 }] });
    node.cluster.put(web);
    const added = node.cluster.replan().changes.get("IPv4");
    if (added === undefined) throw new Error("the plan is to change");
    node.family.take(node.plan, added);
    await node.pass(GRACE - 1_000);
    expect(node.reported()).toEqual([]);
    await node.pass(4_000);
    expect(node.reported()).toEqual(["differs default/web verdict"]);
    node.cluster.remove(web, ...scenario.objects.filter(({ metadata }) => metadata.name === "lb"));
    const removed = node.cluster.replan().changes.get("IPv4");
    if (removed === undefined) throw new Error("the plan is to change");
    node.family.take(node.plan, removed);
    await node.pass(REPORTED_MS);
    expect(node.reported()).toEqual(
      expect.arrayContaining([
        "agrees default/web",
        "differs tcp 10.96.1.9:80 extra",
        "differs tcp 203.0.113.9:80 extra",
        "differs tcp node port 30109 extra",
      ]),
    );
  });

  test("reads the kernel again only when its generation is another, where it has one", async () => {
    node.generation = 7;
    await node.pass(6_000);
    const { reads } = node;
    await node.pass(60_000);
    expect(node.reads).toBe(reads);
    node.text = node.text.replace("0.50000000000", "0.25000000000");
    node.generation = 8;
    await node.pass(REPORTED_MS);
    expect(node.reported()).toContain("differs default/lb shares");
  });

  test("says that it sees nothing, and compares again when it can", async () => {
    node.failure = new Error("Operation not permitted");
    await node.pass(4_000);
    expect(node.warnings.filter((line) => line.includes("Cannot read the kernel"))).toHaveLength(1);
    expect(differencesPage("iptables", [node.family], GRACE)).toMatchObject({
      families: { IPv4: { problem: "Operation not permitted" } },
    });
    node.failure = undefined;
    node.text = node.text.replace("0.50000000000", "0.25000000000");
    await node.pass(REPORTED_MS + 2_000);
    expect(node.reported()).toContain("differs default/lb shares");
  });

  test("reads once more what another program writes while it is read", async () => {
    node.generation = 7;
    await node.pass(6_000);
    node.text = node.text.replace("0.50000000000", "0.25000000000");
    node.generation = 8;
    node.failsOnce = () => {
      node.generation = 9;
      return new Error("reading set ip kube-proxy __map4: ENOENT: no such file or directory");
    };
    await node.pass(REPORTED_MS);
    expect(node.reported()).toContain("differs default/lb shares");
    expect(node.warnings.filter((line) => line.includes("Cannot read the kernel"))).toEqual([]);
  });

  test("its metrics count service ports by what is different, past the grace only", async () => {
    const shares = () =>
      /^fairlead_shadow_differences\{ip_family="IPv4",kind="shares"\} (\d+)$/m.exec(metricsText([node.family]))?.[1];
    node.text = node.text.replace("0.50000000000", "0.25000000000");
    await node.pass(3_000);
    expect(shares()).toBe("0");
    await node.pass(REPORTED_MS);
    expect(shares()).toBe("1");
  });
});

test.each([["--on", "node-a"], ["--rules", "rules.txt"], ["--all-nodes"], ["--repair"]])(
  "--watch looks at this host only: %s is refused",
  async (...words) => {
    const { code, err } = await fairlead(["verify", "--watch", ...words]);
    expect(code).toBe(2);
    expect(err).toContain("--watch: leave out --on, --all-nodes, --live, --rules, --sysdump and --repair");
  },
);

test("no value begins a line of its own", () => {
  const lines: string[] = [];
  watchLog(
    "text",
    (line) => lines.push(line),
    () => 0,
  ).warn("differs", { found: "a\nb" });
  watchLog(
    "json",
    (line) => lines.push(line),
    () => 0,
  ).info("agrees", { service: "default/web" });
  expect(lines).toEqual([
    '1970-01-01T00:00:00.000Z warn differs found="a\\nb"\n',
    '{"time":"1970-01-01T00:00:00.000Z","level":"info","message":"agrees","service":"default/web"}\n',
  ]);
});

/** What kube-proxy in ipvs mode has in nat once it has begun its first sync, seconds before the rest. */
const BEGUN_IN_IPVS = `*nat
:PREROUTING ACCEPT [0:0]
:KUBE-SERVICES - [0:0]
:KUBE-POSTROUTING - [0:0]
:KUBE-NODE-PORT - [0:0]
-A PREROUTING -m comment --comment "kubernetes service portals" -j KUBE-SERVICES
COMMIT
`;

interface Held {
  readonly nat?: string;
  readonly tables?: readonly string[];
  /** Of kube-ipvs0. */
  readonly bound?: readonly string[];
}

function kernelWith({ nat = "", tables = [], bound }: Held): KernelReader {
  const never = () => Promise.reject(new Error("this test does not use it"));
  return {
    addresses: new FakeNodeAddresses([]),
    rules: async (family) => savedRules(family === "IPv4" ? nat : "", family),
    rulesGeneration: never,
    generation: never,
    hasNftTable: async (_family, name) => tables.includes(name),
    nftTable: never,
    servers: never,
    sets: never,
    addressesOf: async () => bound && new Set(bound),
    setting: never,
    close: async () => {},
  };
}

test.each<{ what: string; held: Held; mode: string | undefined }>([
  { what: "nothing", held: {}, mode: undefined },
  { what: "the table of nftables mode", held: { tables: ["kube-proxy"] }, mode: "nftables" },
  { what: "rules of iptables mode", held: { nat: goldenScenario("09-loadbalancer").iptables }, mode: "iptables" },
  {
    what: "addresses on kube-ipvs0",
    held: { nat: BEGUN_IN_IPVS, bound: ["10.96.0.1"] },
    mode: "ipvs",
  },
  { what: "chains of ipvs mode and no device yet", held: { nat: BEGUN_IN_IPVS }, mode: undefined },
  { what: "chains of ipvs mode and no address yet", held: { nat: BEGUN_IN_IPVS, bound: [] }, mode: undefined },
])("the mode of a proxy that has programmed $what is $mode", async ({ held, mode }) => {
  expect((await seenMode(kernelWith(held)))?.name).toBe(mode);
});
