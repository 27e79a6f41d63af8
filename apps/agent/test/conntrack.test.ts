import { mkdtemp, readFile, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { settled, VirtualClock } from "@fairlead/base/testing";
import { ClusterState, frontendLookup, type PlanChange, type ServicePortGroup } from "@fairlead/core";
import { CommandError, type ConntrackFlow, createSysctl } from "@fairlead/kernel";
import { FakeSysctl } from "@fairlead/kernel/fake";
import { endpointSlice } from "@fairlead/testkit";
import { beforeEach, describe, expect, test } from "vitest";
import { CleaningQueue, conntrackFollower, conntrackSysctls, prepareConntrack } from "../src/conntrack.ts";
import { createMetrics } from "../src/metrics/metrics.ts";
import type { FamilyRun } from "../src/sync/follower.ts";
import { configOf, recordedLog, runOf } from "./support/fake-node.ts";
import { runningAgent, web } from "./support/running-agent.ts";

function group(protocol: "TCP" | "UDP" | "SCTP", family: "IPv4" | "IPv6" = "IPv4"): ServicePortGroup {
  return {
    id: `default/web/${protocol.toLowerCase()}`,
    name: "default/web",
    service: "default/web",
    family,
    protocol,
    cluster: [],
    local: [],
    serving: [],
    endpointCount: 0,
    frontends: [],
    annotations: {},
  };
}

function change(...groups: ServicePortGroup[]): PlanChange {
  return {
    family: "IPv4",
    groups: new Map(groups.map((after) => [after.id, { after }])),
    healthChecks: new Map(),
    foreignClusterIPs: { added: [], removed: [] },
  };
}

describe("what conntrack has to be cleaned of", () => {
  test("only what changed, which is all that is served after the start", () => {
    const queue = new CleaningQueue("IPv4");
    expect(queue.take()).toBeUndefined();
    queue.changed(change(group("TCP")));
    expect(queue.take()).toBeUndefined();
    queue.changed(change(group("TCP"), group("UDP")));
    queue.changed(undefined);
    expect([...(queue.take()?.protocols ?? [])]).toEqual(["UDP"]);
  });

  test("groups that another network has taken over, only of its family", () => {
    const queue = new CleaningQueue("IPv4");
    const released = group("UDP");
    queue.released([released, group("TCP"), group("UDP", "IPv6")]);
    expect(queue.take()).toEqual({ protocols: new Set(["UDP"]), released: [released], gone: [] });
  });

  test("TCP where that is asked for and an endpoint is gone that is no other network's", () => {
    const having = (...addresses: string[]): ServicePortGroup => {
      const serving = addresses.map((address) => ({ address, port: 80, local: false }));
      return { ...group("TCP"), serving };
    };
    const step = (before: ServicePortGroup, after: ServicePortGroup): PlanChange => ({
      ...change(),
      groups: new Map([[after.id, { before, after }]]),
    });
    const queue = new CleaningQueue("IPv4", { isForeign: (address) => address.startsWith("10.244.") });
    queue.changed(step(having("10.144.0.1"), having("10.144.0.1", "10.144.0.2")));
    queue.changed(step(having("10.144.0.1", "10.244.0.1"), having("10.144.0.1")));
    expect(queue.take()).toBeUndefined();
    queue.changed(step(having("10.144.0.1", "10.144.0.2"), having("10.144.0.1")));
    queue.changed(step(having("10.144.0.1"), having("10.144.0.3")));
    const gone = ["10.144.0.2", "10.144.0.1"].map((address) => ({ group: "default/web/tcp", address, port: 80 }));
    expect(queue.take()).toEqual({ protocols: new Set(["TCP"]), released: [], gone });
    expect(queue.take()).toBeUndefined();
  });
});

describe("cleaning", () => {
  const run: FamilyRun = {
    ...runOf({ kind: "synced", report: { kind: "partial", objects: {} }, milliseconds: 1 }),
    change: change(group("UDP")),
  };

  test("what is deleted of TCP is counted by itself, too, where it is deleted at all", async () => {
    const { deletedTCP } = createMetrics(new ClusterState()).conntrack;
    expect(deletedTCP).toBeUndefined();
    const all = createMetrics(new ClusterState(), { resetsTCP: true });
    const conntrack = { sweep: async (_: unknown, protocol: string) => (protocol === "TCP" ? 2 : 1) };
    const one = conntrackFollower({
      families: ["IPv4"],
      conntrack,
      lookup: (family) => frontendLookup(family, []),
      resets: { isForeign: () => false },
      metrics: all.conntrack,
      clock: new VirtualClock(),
      log: recordedLog(),
    });
    const before = { ...group("TCP"), serving: [{ address: "10.144.0.1", port: 80, local: false }] };
    const gone = { ...change(), groups: new Map([[before.id, { before, after: group("TCP") }]]) };
    await one.ran?.({ ...run, change: gone });
    const { text } = await all.text();
    expect(text).toContain('fairlead_stale_tcp_entries_deleted_total{ip_family="IPv4"} 2\n');
    expect(text).toContain('kubeproxy_conntrack_reconciler_deleted_entries_total{ip_family="IPv4"} 2\n');
  });

  test("a missing tool is reported once, with how to get it", async () => {
    const log = recordedLog();
    const one = conntrackFollower({
      families: ["IPv4"],
      conntrack: { sweep: () => Promise.reject(new CommandError({ argv: ["conntrack"], reason: "not-found" })) },
      lookup: (family) => frontendLookup(family, []),
      metrics: createMetrics(new ClusterState()).conntrack,
      clock: new VirtualClock(),
      log,
    });
    for (let i = 0; i < 3; i++) await one.ran?.(run);
    expect(log.lines).toMatchObject([
      {
        level: "warn",
        fields: { error: "conntrack: conntrack is not installed", hint: expect.stringContaining("apt-get install") },
      },
    ]);
  });
});

describe("stale tcp", () => {
  const CLUSTER_IP = "10.96.67.75";
  const OWN = ["10.144.0.1", "10.144.0.2"] as const;
  const FOREIGN = "10.244.0.1";

  function slice(...endpoints: { readonly address: string; readonly ready?: boolean }[]) {
    return endpointSlice("web-1", { service: "web", family: "IPv4", ports: [{ port: 80 }], endpoints });
  }

  function entry(replySource: string, fields: Partial<ConntrackFlow> = {}): ConntrackFlow {
    const to = { originalDestination: CLUSTER_IP, originalPort: 80, replySource, replyPort: 80 };
    return { family: "IPv4", protocol: "TCP", ...to, ...fields };
  }

  async function serving(mode: string, flags: readonly string[], endpoints: readonly string[] = OWN) {
    const own = ["--cluster-cidr=10.144.0.0/16", "--exclude-cluster-cidr=10.244.0.0/16", "--mixed-services=all"];
    const one = await runningAgent({ mode, flags: [`--proxy-mode=${mode}`, ...own, ...flags] });
    const addresses = endpoints.map((address) => ({ address }));
    await one.serve(web, slice(...addresses));
    one.conntrack.track(...endpoints.map((address) => entry(address)), entry(OWN[0], { originalDestination: OWN[0] }));
    const move = async (...next: Parameters<typeof slice>) => {
      await one.source.put(slice(...next));
      await one.clock.advance(5_000);
      await settled();
    };
    const answering = () => one.conntrack.entries.map(({ replySource }) => replySource);
    return { one, move, answering };
  }

  describe.each(["iptables", "nftables"])("in %s mode", (mode) => {
    test("connections to an endpoint that is gone lose their entries, others do not", async () => {
      const { move, answering } = await serving(mode, ["--reset-stale-tcp"]);
      await move({ address: OWN[0] }, { address: OWN[1], ready: false });
      expect(answering()).toEqual([...OWN, OWN[0]]);
      await move({ address: OWN[0] });
      expect(answering()).toEqual([OWN[0], OWN[0]]);
    });

    test("unless it is asked for, none do, and the entries of TCP are not read", async () => {
      const { one, move, answering } = await serving(mode, []);
      await move({ address: OWN[0] });
      expect(answering()).toEqual([...OWN, OWN[0]]);
      expect(one.conntrack.faults.calls.filter(({ argv }) => argv.includes("tcp"))).toEqual([]);
    });
  });

  test("in ipvs mode its destination goes, and entries of connection tracking are not read", async () => {
    const { one, move, answering } = await serving("ipvs", ["--reset-stale-tcp"]);
    const server = { family: "IPv4", protocol: "TCP", address: CLUSTER_IP, port: 80 } as const;
    const [first, second] = OWN.map((address) => ({ address, port: 80 }));
    if (first === undefined || second === undefined) throw new Error("no endpoints");
    one.ipvs.servers.connect(server, second, 1);
    const destinations = () =>
      one.ipvs.servers.servers().flatMap((each) => each.destinations.map(({ address, weight }) => [address, weight]));
    await move({ address: OWN[0] }, { address: OWN[1], ready: false });
    expect(destinations()).toEqual([
      [OWN[0], 1],
      [OWN[1], 0],
    ]);
    await move({ address: OWN[0] });
    expect(destinations()).toEqual([[OWN[0], 1]]);
    expect(answering()).toEqual([...OWN, OWN[0]]);
    expect(one.conntrack.faults.calls.filter(({ argv }) => argv.includes("tcp"))).toEqual([]);
  });

  test("an endpoint in another network that a service has no more keeps its connections", async () => {
    const { move, answering } = await serving("iptables", ["--reset-stale-tcp"], [...OWN, FOREIGN]);
    await move({ address: OWN[0] });
    expect(answering()).toEqual([OWN[0], FOREIGN, OWN[0]]);
  });

  test("while the kernel refuses the rules they stay, and go with the sync that it takes", async () => {
    const { one, move, answering } = await serving("iptables", ["--reset-stale-tcp"]);
    const stopFailing = one.faults.IPv4.onCall(() => ({ kind: "fail", exitCode: 4, stderr: "boom" }));
    await move({ address: OWN[0] });
    expect(answering()).toEqual([...OWN, OWN[0]]);
    stopFailing();
    await one.clock.advance(120_000);
    expect(answering()).toEqual([OWN[0], OWN[0]]);
  });
});

describe("conntrack settings", () => {
  let dir = "";
  beforeEach(async () => {
    dir = await mkdtemp(join(tmpdir(), "fairlead-conntrack-"));
  });

  const wanted = (flags: readonly string[], cores: number) =>
    Object.fromEntries(
      conntrackSysctls(configOf(flags).conntrack, cores).map(({ key, value }) => [key.slice(27), value]),
    );

  test("kube-proxy's defaults: entries by cores, time-outs of TCP, the rest as it is", () => {
    expect(wanted([], 8)).toEqual({ max: 262_144, tcp_timeout_established: 86_400, tcp_timeout_close_wait: 3_600 });
  });

  test("entries: at least the minimum, at most 2^20, and none of it with 0 per core", () => {
    expect(wanted([], 2)["max"]).toBe(131_072);
    expect(wanted([], 64)["max"]).toBe(1_048_576);
    expect(wanted(["--conntrack-max-per-core=0"], 8)["max"]).toBeUndefined();
  });

  test("everything that can be asked for", () => {
    const flags = ["--conntrack-tcp-be-liberal", "--conntrack-udp-timeout=30s", "--conntrack-udp-timeout-stream=2m"];
    const zeros = ["--conntrack-tcp-timeout-established=0", "--conntrack-tcp-timeout-close-wait=0"];
    expect(wanted([...flags, ...zeros], 1)).toEqual({
      max: 131_072,
      tcp_be_liberal: 1,
      udp_timeout: 30,
      udp_timeout_stream: 120,
    });
  });

  test("only what differs is written, and the buckets follow the entries", async () => {
    const keys = ["max", "tcp_timeout_established", "tcp_timeout_close_wait"].map(
      (name) => `net/netfilter/nf_conntrack_${name}`,
    );
    const [max = "", established = "", closeWait = ""] = keys;
    const sysctl = new FakeSysctl({ [max]: "65536", [established]: "432000", [closeWait]: "3600" });
    const hashSizeFile = join(dir, "hashsize");
    await writeFile(hashSizeFile, "16384\n");
    const log = recordedLog();
    await prepareConntrack(configOf([]).conntrack, sysctl, log, { cores: 8, hashSizeFile });
    expect(await sysctl.read(max)).toBe("262144");
    expect(await readFile(hashSizeFile, "utf8")).toBe("65536");
    expect(log.lines.map(({ fields }) => fields["before"])).toEqual(["65536", "432000"]);
  });

  test("more entries than are asked for stay", async () => {
    const max = "net/netfilter/nf_conntrack_max";
    const sysctl = new FakeSysctl({ [max]: "524288" });
    const hashSizeFile = join(dir, "hashsize");
    await writeFile(hashSizeFile, "131072");
    await prepareConntrack(configOf([]).conntrack, sysctl, recordedLog(), { cores: 8, hashSizeFile });
    expect(await sysctl.read(max)).toBe("524288");
    expect(await readFile(hashSizeFile, "utf8")).toBe("131072");
  });

  test("a read-only /proc is one warning", async () => {
    const log = recordedLog();
    await prepareConntrack(configOf([]).conntrack, createSysctl(dir), log, {
      cores: 8,
      hashSizeFile: join(dir, "none"),
    });
    expect(log.lines).toHaveLength(1);
    expect(log.lines[0]).toMatchObject({ level: "warn" });
    expect(JSON.stringify(log.lines[0])).toContain("net.netfilter.nf_conntrack_max=262144");
  });
});
