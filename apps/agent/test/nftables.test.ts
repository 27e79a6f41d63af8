import { settled } from "@fairlead/base/testing";
import { FakeNftables } from "@fairlead/kernel/fake";
import { NftBatch, tableLines } from "@fairlead/netfilter/nft";
import { service, serviceCIDR } from "@fairlead/testkit";
import { describe, expect, test } from "vitest";
import { modes } from "../src/modes/index.ts";
import { nftablesMode, probePlan, WatchedTables, whyTooOld } from "../src/modes/nftables.ts";
import { chooseMode, openFamilies } from "../src/start/choose-mode.ts";
import { Progress } from "../src/sync/follower.ts";
import { configOf, fakeKernel, recordedLog } from "./support/fake-node.ts";
import { nodeA, type RunningAgent, runningAgent, slice, webNodePort as web } from "./support/running-agent.ts";

const FLAGS = ["--proxy-mode=nftables", "--cluster-cidr=10.144.0.0/16,fd00:144::/48"];

async function serving(...flags: string[]) {
  const one = await runningAgent({ mode: "nftables", flags: [...FLAGS, ...flags], families: ["IPv4", "IPv6"] });
  await one.list(nodeA, web, slice("web", "10.144.154.71"), serviceCIDR("kubernetes", ["10.96.0.0/12"]));
  await one.source.synced("serviceCIDRs");
  await one.clock.advance(5_000);
  return one;
}

function linesOf({ nftables }: Pick<RunningAgent, "nftables">, family: "ip" | "ip6" = "ip"): readonly string[] {
  const table = nftables.tableNow(family, "kube-proxy");
  return table === undefined ? [] : [...tableLines(table)].map((line) => line.trim());
}

const FIRST = { bindAddress: "0.0.0.0", serviceProxyName: "" };

describe("whether a node can do it", () => {
  test("the kernel checks all that may be written, and nothing is", async () => {
    const { kernel, nftables } = fakeKernel();
    const { mode } = await chooseMode(modes, configOf(FLAGS), kernel, recordedLog());
    expect(mode).toBe(nftablesMode);
    const { families } = await openFamilies(mode, kernel, FIRST, recordedLog());
    expect(families).toEqual(["IPv4", "IPv6"]);
    expect(nftables.faults.calls.map(({ argv }) => argv[2])).toContain("check");
    expect(nftables.faults.calls.map(({ argv }) => argv[2])).not.toContain("commit");
    expect(nftables.tableNow("ip", "kube-proxy")).toBeUndefined();
  });

  test("a family whose table the kernel refuses is left out, with what it refused and what is needed", async () => {
    const { kernel, nftables } = fakeKernel();
    nftables.faults.onCall(({ argv }) =>
      argv[2] === "check" && argv[3] === "ip6" ? { kind: "fail", errno: "ENOTSUP", message: 4 } : undefined,
    );
    const log = recordedLog();
    const { families, unserved } = await openFamilies(nftablesMode, kernel, FIRST, log);
    expect(families).toEqual(["IPv4"]);
    expect(unserved.get("IPv6")).toMatch(/Linux 5\.13 .* nft_chain_nat.*table ip6 kube-proxy.*ENOTSUP/s);
  });

  test("kernels before 5.13 are refused as kube-proxy refuses them, unless a setting allows them", () => {
    const old = { major: 5, minor: 12, release: "5.12.19" };
    expect(whyTooOld(old)).toBe(
      "it needs Linux 5.13 or later, and this is 5.12.19; KUBE_PROXY_NFTABLES_SKIP_KERNEL_VERSION_CHECK=1 has it tried",
    );
    expect(whyTooOld(old, "1")).toBeUndefined();
    expect(whyTooOld({ major: 5, minor: 13, release: "5.13.0" })).toBeUndefined();
    expect(whyTooOld({ major: 6, minor: 1, release: "6.1.0" })).toBeUndefined();
  });

  test("without netlink the agent ends and says so; no other mode serves in its place", async () => {
    const { kernel } = fakeKernel({
      nftables: () => Promise.reject(new Error("koffi has no binary for this machine")),
    });
    await expect(chooseMode(modes, configOf(FLAGS), kernel, recordedLog())).rejects.toThrow(
      "--proxy-mode=nftables: not available on this node: nf_tables cannot be reached by netlink: koffi has no binary",
    );
  });
});

describe("serving", () => {
  test("services, node ports on the node's own address, and the ServiceCIDRs, which come late", async () => {
    const one = await serving();
    const lines = linesOf(one);
    expect(lines.join("\n")).toContain("10.96.67.75 . tcp . 80");
    expect(lines.join("\n")).toContain("10.144.154.71 . 80");
    expect(lines.join("\n")).toContain("elements = { 10.201.0.10 }");
    expect(lines.filter((line) => line.includes("Drop traffic to unallocated ClusterIPs"))).toEqual([
      'ip daddr 10.96.0.0/12 drop comment "Drop traffic to unallocated ClusterIPs"',
    ]);
    expect(linesOf(one, "ip6").join("\n")).not.toContain("unallocated");
  });

  test("the masquerade bit is that of the mode", async () => {
    const block = (fields: string) =>
      `apiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\nmode: nftables\nnftables: {${fields}}\n`;
    const written = async (fields: string) => {
      const { kernel, nftables } = fakeKernel();
      const config = configOf(["--config=file"], { file: block(fields) });
      const node = { config, families: ["IPv4"], kernel, log: recordedLog() } as const;
      const { backends } = await nftablesMode.serve({ ...node, progress: new Progress() });
      await backends.get("IPv4")?.sync(probePlan("IPv4", nftablesMode.facts.semantics));
      return linesOf({ nftables }).join("\n");
    };
    expect(await written("masqueradeBit: 3")).toContain("meta mark set meta mark | 0x00000008");
    expect(await written("masqueradeBit: 3")).not.toContain("0x00004000");
  });
});

describe("node ports on loopback addresses", () => {
  const GATE = "--feature-gates=KubeProxyNFTablesLocalhostNodePorts=true";
  const dns = service("dns", {
    type: "NodePort",
    clusterIPs: ["10.96.0.10"],
    ports: [{ port: 53, nodePort: 30_053, protocol: "UDP" }],
  });
  const refused = (one: RunningAgent) =>
    linesOf(one)
      .join("\n")
      .match(/map localhost-nodeport-reject-ports \{[^}]*\}?[^}]*/)?.[0] ?? "";
  const metric = async (one: RunningAgent, name: string) =>
    (await one.metrics())
      .split("\n")
      .filter((line) => line.startsWith(`kubeproxy_nftables_localhost_nodeport_${name}`))
      .map((line) => line.slice("kubeproxy_nftables_localhost_nodeport_".length));

  test("with the gate and localhost TCP is relayed, UDP refused and counted; all of it ends with the agent", async () => {
    const one = await serving(GATE, "--nodeport-addresses=primary,localhost");
    await one.source.put(dns);
    await one.clock.advance(5_000);
    expect(one.sockets.listening).toEqual(["127.0.0.1:30080 tcp"]);
    expect(one.sockets.ask("TCP", "127.0.0.1:30080", "127.0.0.1")?.address).toBe("10.144.154.71");
    expect(refused(one)).toContain("udp . 30053");
    expect(refused(one)).not.toContain("tcp");
    one.nftables.count("ip", "kube-proxy", "localhost-nodeport-reject-udp", 3);
    expect(await metric(one, "listeners")).toEqual(['listeners{ip_family="IPv4"} 1', 'listeners{ip_family="IPv6"} 0']);
    expect(await metric(one, "rejected")).toContain('rejected_packets_total{ip_family="IPv4",protocol="UDP"} 3');
    // What is written anew counts from 0, and the metric goes on.
    one.nftables.flush();
    await one.clock.advance(5_000);
    one.nftables.count("ip", "kube-proxy", "localhost-nodeport-reject-udp", 2);
    expect(await metric(one, "rejected")).toContain('rejected_packets_total{ip_family="IPv4",protocol="UDP"} 5');
    await one.stop();
    expect(one.sockets.listening).toEqual([]);
  });

  test("a port that another program has is counted and reported; rules and other ports are served", async () => {
    const one = await runningAgent({
      mode: "nftables",
      flags: [...FLAGS, GATE, "--nodeport-addresses=primary,localhost"],
    });
    one.sockets.taken.add("127.0.0.1:30080 tcp");
    await one.serve(web, slice("web", "10.144.154.71"));
    expect(linesOf(one).join("\n")).toContain("tcp . 30080");
    expect(await metric(one, "listener_creation")).toEqual(['listener_creation_failures_total{ip_family="IPv4"} 1']);
    expect(one.log.lines.filter(({ fields }) => String(fields["problem"]).includes("EADDRINUSE"))).toHaveLength(1);
  });

  test("with the gate only, every protocol is refused there; without it nothing is written and no metric is there", async () => {
    const one = await serving(GATE);
    expect(one.sockets.listening).toEqual([]);
    expect(refused(one)).toContain("tcp . 30080");
    await one.stop();
    const without = await serving("--nodeport-addresses=primary,localhost");
    expect(without.sockets.listening).toEqual([]);
    expect(linesOf(without).join("\n")).not.toContain("localhost");
    expect(await metric(without, "")).toEqual([]);
  });
});

describe("what others do", () => {
  const theirs = new NftBatch("ip", "theirs").addTable();

  test.each([
    ["nft flush ruleset", (one: RunningAgent) => one.nftables.flush(), "the table is missing"],
    [
      "an endpoint taken away",
      (one: RunningAgent) => one.nftables.meddle(emptied("endpoints-2")),
      "set endpoints-2 differs in its elements (1 missing)",
    ],
    [
      "a rule flushed away",
      (one: RunningAgent) => one.nftables.meddle(new NftBatch("ip", "kube-proxy").flushChain("services")),
      "chain services differs in its rules (0, expected ",
    ],
  ])("%s by hand: there again within two seconds", async (_what, meddle, differs) => {
    const one = await serving();
    const before = linesOf(one);
    meddle(one);
    expect(linesOf(one)).not.toEqual(before);
    await one.clock.advance(2_000);
    expect(linesOf(one)).toEqual(before);
    const fields = { ipFamily: "IPv4", differs: expect.stringContaining(differs), by: "nft (4711)" };
    expect(one.log.lines).toContainEqual(expect.objectContaining({ level: "warn", fields }));
  });

  test("their own tables are no reason to write, nor to read", async () => {
    const one = await serving();
    const calls = one.nftables.faults.calls.length;
    one.nftables.meddle(theirs);
    await one.clock.advance(62_000);
    expect(one.nftables.faults.calls).toHaveLength(calls);
  });

  test("what may have been changed and was not is neither written again nor reported", async () => {
    const one = await serving();
    const before = commits(one);
    for (let time = 0; time < 5; time++) {
      one.nftables.loseNews();
      await one.clock.advance(62_000);
    }
    expect(commits(one)).toBe(before);
    expect(one.log.lines.filter(({ message }) => message.includes("differ"))).toEqual([]);
  });

  test("the first commit waits until others are followed, so that nothing is missed at a start", async () => {
    const nftables = new FakeNftables();
    const listening = Promise.withResolvers<void>();
    const watch = nftables.watch.bind(nftables);
    nftables.watch = async function* (options) {
      await listening.promise;
      yield* watch(options);
    };
    const tables = new WatchedTables(nftables, "kube-proxy", recordedLog());
    const stop = new AbortController();
    const watching = tables.watch({ changed: () => {} }, stop.signal);
    const committed = tables.port.commit(new NftBatch("ip", "kube-proxy").addTable());
    await settled();
    expect(nftables.tableNow("ip", "kube-proxy")).toBeUndefined();
    listening.resolve();
    await committed;
    expect(nftables.tableNow("ip", "kube-proxy")).toBeDefined();
    expect(tables.port.news?.("ip")).toEqual({ touched: 0, unreported: 0, by: [] });
    stop.abort();
    await watching;
  });

  test("nor does it wait where others cannot be followed: then each check looks", async () => {
    const nftables = new FakeNftables();
    const watch = nftables.watch.bind(nftables);
    const stop = new AbortController();
    nftables.watch = async function* (options) {
      options.onProblem?.(new Error("no multicast group"));
      yield* watch({ ...options, signal: AbortSignal.abort() });
    };
    const tables = new WatchedTables(nftables, "kube-proxy", recordedLog());
    await tables.watch({ changed: () => {} }, stop.signal);
    await tables.port.commit(new NftBatch("ip", "kube-proxy").addTable());
    expect(tables.port.news?.("ip").unreported).toBe(1);
  });
});

function commits({ nftables }: RunningAgent): number {
  return nftables.faults.calls.filter(({ argv }) => argv[2] === "commit").length;
}

function emptied(set: string): NftBatch {
  return new NftBatch("ip", "kube-proxy").flushSet(set);
}
