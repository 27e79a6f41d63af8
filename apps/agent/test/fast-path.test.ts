import { mkdtemp, readFile, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { chooseDevices } from "@fairlead/backend-nftables";
import { VirtualClock } from "@fairlead/base/testing";
import type { FlowtableTest, NetworkDevice } from "@fairlead/kernel";
import { FakeDevices, FakeNftables, FakeSysctl } from "@fairlead/kernel/fake";
import { describe, expect, test } from "vitest";
import { FastPathDevices, openFastPath } from "../src/fast-path.ts";
import { probePlan, servingBy } from "../src/modes/nftables.ts";
import { Progress } from "../src/sync/follower.ts";
import { configOf, fakeKernel, recordedLog } from "./support/fake-node.ts";

const FAMILIES = ["IPv4", "IPv6"] as const;

describe("devices", () => {
  const device = (index: number, name: string, more: Partial<NetworkDevice> = {}) => ({ index, name, ...more });

  test.each([
    ["a name", ["eth0"], [device(2, "eth0"), device(3, "eth01")], ["eth0"]],
    ["a pattern", ["cali*", "eth?"], [device(2, "eth0"), device(3, "cali1"), device(4, "acali")], ["eth0", "cali1"]],
    ["a name with a dot", ["flannel.1"], [device(2, "flannel.1"), device(3, "flannelx1")], ["flannel.1"]],
    ["everything but lo", ["*"], [device(1, "lo"), device(2, "eth0")], ["eth0"]],
  ])("are chosen by %s", (_, patterns, all, chosen) => {
    expect([...chooseDevices(patterns, all, { bridgeFilter: false }).devices.keys()]).toEqual(chosen);
  });

  test.each([
    ["a bridge with br_netfilter", [device(2, "cni0", { kind: "bridge" })], true, ["cni0"]],
    ["a bridge without", [device(2, "cni0", { kind: "bridge" })], false, []],
    [
      "ports of Open vSwitch",
      [device(2, "ovs-system", { kind: "openvswitch" }), device(3, "veth1", { kind: "veth", master: 2 })],
      false,
      ["ovs-system", "veth1"],
    ],
    [
      "ports of a bridge",
      [device(2, "veth1", { kind: "veth", master: 3 }), device(3, "cni0", { kind: "bridge" })],
      true,
      ["cni0"],
    ],
    [
      "devices of Cilium",
      [device(2, "cilium_host"), device(3, "lxc1"), device(4, "eth0")],
      false,
      ["cilium_host", "lxc1"],
    ],
    ["devices of Calico with eBPF", [device(2, "bpfin.cali"), device(3, "cali1")], false, ["cali1"]],
  ])("are left out: %s", (_, all, bridgeFilter, refused) => {
    const chosen = chooseDevices(["*"], all, { bridgeFilter });
    expect([...chosen.refused.keys()]).toEqual(refused);
    expect([...chosen.devices.keys()].filter((name) => refused.includes(name))).toEqual([]);
  });

  test("auto follows routes and addresses", async () => {
    const follower = new FakeDevices();
    const parts = { follower, sysctl: new FakeSysctl(), timers: new VirtualClock(), log: recordedLog() };
    const networks = { pods: ["10.144.0.0/16"], excluded: ["10.144.9.0/24"] };
    const followed = new FastPathDevices({ wanted: "auto", ...networks, ...parts });
    const stop = new AbortController();
    const updates: string[][] = [];
    const done = followed.follow(async () => void updates.push([...followed.devices.keys()]), stop.signal);
    follower.add("cali1", { kind: "veth", routes: ["10.144.1.5/32"] });
    await expect.poll(() => updates).toEqual([["cali1"]]);
    follower.add("cali9", { kind: "veth", routes: ["10.144.9.5/32"] });
    follower.add("eth0", { routes: ["0.0.0.0/0"] });
    await expect.poll(() => updates).toEqual([["cali1"], ["cali1", "eth0"]]);
    stop.abort();
    await done;
  });

  test("are followed; one that is left out is reported once", async () => {
    const follower = new FakeDevices();
    follower.add("cali1");
    follower.add("cali-br", { kind: "bridge" });
    const log = recordedLog();
    const sysctl = new FakeSysctl({ "net/bridge/bridge-nf-call-iptables": 1 });
    const followed = new FastPathDevices({
      wanted: ["cali*"],
      pods: [],
      excluded: [],
      follower,
      sysctl,
      timers: new VirtualClock(),
      log,
    });
    const stop = new AbortController();
    const updates: string[][] = [];
    const done = followed.follow(async () => void updates.push([...followed.devices.keys()]), stop.signal);
    await expect.poll(() => updates.length).toBe(1);
    follower.add("cali2");
    await expect.poll(() => updates.length).toBe(2);
    follower.add("other");
    follower.delete("cali1");
    await expect.poll(() => updates.length).toBe(3);
    follower.add("cali1");
    await expect.poll(() => updates.length).toBe(4);
    stop.abort();
    await done;
    expect(updates).toEqual([["cali1"], ["cali1", "cali2"], ["cali2"], ["cali2", "cali1"]]);
    expect(log.lines.map(({ message }) => message)).toEqual([
      "Device left out of the fast path; its packets meet all rules",
    ]);
  });
});

describe("whether it is used", () => {
  async function opened({
    tested = { outcome: "passed" } as FlowtableTest,
    configured = true,
    devices = ["cali*"] as readonly string[] | "auto",
    flags = [] as readonly string[],
    nftables = new FakeNftables(),
    // No folder can be made there.
    stateDir = "/dev/null/none",
  } = {}) {
    let tests = 0;
    const { kernel } = fakeKernel({
      testFlowtable: async () => {
        tests += 1;
        return tested;
      },
    });
    const config = configOf(["--proxy-mode=nftables", `--state-dir=${stateDir}`, ...flags]);
    const settings = configured ? { fastPath: { devices } } : {};
    const configuration = { ...config, nftables: { ...config.nftables, ...settings } };
    const { fastPath, notice } = await openFastPath(nftables, {
      config: configuration,
      families: FAMILIES,
      kernel,
      log: recordedLog(),
    });
    return { used: fastPath !== undefined, notice, tests };
  }

  test.each([
    [["--cluster-cidr=10.144.0.0/16"], undefined],
    [[], "devices: auto needs clusterCIDR; give it, or name the devices"],
    [
      ["--cluster-cidr=10.144.0.0/16", "--exclude-cidrs-from=calico-ippools"],
      "devices: auto does not know networks that are learned; name the devices",
    ],
  ])("devices: auto with %j", async (flags, why) => {
    const { used, notice } = await opened({ devices: "auto", flags });
    expect(used).toBe(why === undefined);
    if (why !== undefined) expect(notice?.message).toContain(why);
  });

  test("not without the option, and nothing is tested", async () => {
    expect(await opened({ configured: false })).toEqual({ used: false, notice: undefined, tests: 0 });
  });

  test("on a kernel that passed the test", async () => {
    expect(await opened()).toEqual({ used: true, notice: undefined, tests: 1 });
  });

  test.each([
    [{ outcome: "failed", reason: "IPv4: TCP came back changed" }, /failed the test of its flowtables: IPv4: TCP came/],
    [
      { outcome: "impossible", reason: "EPERM" },
      /cannot run it \(EPERM\); run fairlead-proxy --init-only .*--state-dir$/,
    ],
  ] as const)("not where the test ended as %j", async (tested, why) => {
    const { used, notice } = await opened({ tested });
    expect(used).toBe(false);
    expect(notice).toMatchObject({ type: "Warning", reason: "FastPathDisabled", message: expect.stringMatching(why) });
  });

  test("not where the kernel has no flowtables: it is not tested", async () => {
    const nftables = new FakeNftables();
    nftables.faults.failNext({ kind: "fail", errno: "ENOENT", message: 2 });
    const { used, notice, tests } = await opened({ nftables });
    expect([used, tests]).toEqual([false, 0]);
    expect(notice?.message).toMatch(/modules nf_flow_table and nft_flow_offload\): .*cannot add flowtable fast-path/);
  });

  test("by the result that was noted since the boot, as another kernel's counts for nothing", async () => {
    const stateDir = await mkdtemp(join(tmpdir(), "fast-path-"));
    expect(await opened({ stateDir })).toMatchObject({ used: true, tests: 1 });
    const failed = { outcome: "failed", reason: "now" } as const;
    expect(await opened({ stateDir, tested: failed })).toMatchObject({ used: true, tests: 0 });
    const file = join(stateDir, "fast-path.json");
    const noted = JSON.parse(await readFile(file, "utf8"));
    await writeFile(file, JSON.stringify({ ...noted, boot: "another" }));
    expect(await opened({ stateDir, tested: failed })).toMatchObject({ used: false, tests: 1 });
    await writeFile(file, "no JSON");
    expect(await opened({ stateDir })).toMatchObject({ used: true, tests: 1 });
  });

  test("a test that was impossible is not noted: another start may have the rights", async () => {
    const stateDir = await mkdtemp(join(tmpdir(), "fast-path-"));
    await opened({ stateDir, tested: { outcome: "impossible", reason: "EPERM" } });
    expect(await opened({ stateDir })).toMatchObject({ used: true, tests: 1 });
  });
});

test("both families' flowtables have the devices, from the first sync on, as they come and get other names", async () => {
  const nftables = new FakeNftables();
  const follower = new FakeDevices();
  const come = (name: string) => {
    nftables.addDevice(name);
    follower.add(name);
  };
  come("cali1");
  const [config, log] = [configOf(["--proxy-mode=nftables"]), recordedLog()];
  const timers = new VirtualClock();
  const parts = { wanted: ["cali*"], pods: [], excluded: [], follower, sysctl: new FakeSysctl(), timers, log };
  const context = { config, families: FAMILIES, log, progress: new Progress() };
  const runtime = servingBy(nftables, context, { fastPath: new FastPathDevices(parts) });
  const stop = new AbortController();
  const following = runtime.watchForeign?.({ changed: () => {} }, stop.signal);
  for (const [family, backend] of runtime.backends) await backend.sync(probePlan(family, backend.semantics));
  const devices = () =>
    (["ip", "ip6"] as const).map(
      (family) => nftables.tableNow(family, "kube-proxy")?.flowtables?.get("fast-path")?.devices,
    );
  await expect.poll(devices).toEqual([["cali1"], ["cali1"]]);
  come("cali2");
  await expect.poll(devices).toEqual([
    ["cali1", "cali2"],
    ["cali1", "cali2"],
  ]);
  nftables.renameDevice("cali1", "other");
  follower.rename("cali1", "other");
  await expect.poll(devices).toEqual([["cali2"], ["cali2"]]);
  nftables.renameDevice("cali2", "cali3");
  follower.rename("cali2", "cali3");
  await expect.poll(devices).toEqual([["cali3"], ["cali3"]]);
  stop.abort();
  await following;
});
