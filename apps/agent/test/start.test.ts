import { filterSettings } from "@fairlead/intake";
import {
  FakeConntrack,
  FakeDevices,
  FakeIptables,
  FakeNfacct,
  FakeNodeAddresses,
  FakeRouting,
  FakeSysctl,
  FakeTracking,
} from "@fairlead/kernel/fake";
import { describe, expect, test } from "vitest";
import type { Kernel } from "../src/kernel.ts";
import { modes } from "../src/modes/index.ts";
import { CounterMaker, iptablesMode } from "../src/modes/iptables.ts";
import { cleanUp } from "../src/start/action.ts";
import { chooseMode, openFamilies } from "../src/start/choose-mode.ts";
import { Progress } from "../src/sync/follower.ts";
import { fakeIpvs } from "./support/fake-ipvs.ts";
import { recordedLog } from "./support/recorded-log.ts";
import { configOf } from "./support/running-agent.ts";

const IPV6_ON = { "net/ipv6/conf/all/disable_ipv6": 0, "net/ipv4/conf/all/route_localnet": 0 };

function kernel(sysctls: Readonly<Record<string, number>> = IPV6_ON, ipvsSupported = true) {
  const nfacct = new FakeNfacct();
  const tables = {
    IPv4: new FakeIptables({ family: "IPv4", nfacct }),
    IPv6: new FakeIptables({ family: "IPv6", nfacct }),
  };
  const sysctl = new FakeSysctl(sysctls);
  const log = recordedLog();
  const fake: Kernel = {
    iptables: async (family) => tables[family],
    iptablesInUse: async (family) => [tables[family]],
    ...fakeIpvs({ supported: ipvsSupported }),
    addresses: new FakeNodeAddresses(),
    devices: new FakeDevices(),
    testFlowtable: async () => ({ outcome: "passed" }),
    conntrack: new FakeConntrack(),
    tracking: async () => new FakeTracking(),
    nfacct,
    sysctl,
    nftables: async () => {
      throw new Error("there is no nf_tables");
    },
    removeNftTables: async () => [],
    routing: new FakeRouting(),
    hasNftTable: async () => false,
    sourceAddress: async () => undefined,
  };
  return { tables, sysctl, log, kernel: fake };
}

const DENIED = {
  kind: "fail",
  exitCode: 4,
  stderr: "Fatal: can't open lock file /run/xtables.lock: Permission denied",
} as const;

describe("families", () => {
  const opened = async (one: ReturnType<typeof kernel>, bindAddress = "0.0.0.0") => {
    const { families, unserved } = await openFamilies(
      iptablesMode,
      one.kernel,
      { bindAddress, serviceProxyName: "" },
      one.log,
    );
    return [families, Object.fromEntries(unserved)];
  };

  test("both, where both work", async () => {
    const one = kernel();
    expect(await opened(one)).toEqual([["IPv4", "IPv6"], {}]);
    expect(one.log.lines).toEqual([]);
  });

  test.each([
    [{}, "this kernel has no IPv6"],
    [{ "net/ipv6/conf/all/disable_ipv6": 1 }, "IPv6 is turned off (sysctl net.ipv6.conf.all.disable_ipv6=1)"],
  ])("IPv6 is left out with one line: %j", async (sysctls, reason) => {
    const one = kernel(sysctls);
    expect(await opened(one)).toEqual([["IPv4"], { IPv6: reason }]);
    expect(one.log.lines).toMatchObject([{ level: "warn", fields: { ipFamily: "IPv6", reason } }]);
  });

  test("which one is the primary is not known by an unspecified address: either may be left out", async () => {
    const one = kernel();
    one.tables.IPv4.faults.onCall(() => DENIED);
    for (const unspecified of ["0.0.0.0", "::"]) {
      expect(await opened(one, unspecified)).toEqual([["IPv6"], { IPv4: expect.stringContaining("run as root") }]);
    }
  });

  test("that of the bind address has to work, and the error says what is missing", async () => {
    const one = kernel();
    one.tables.IPv4.faults.onCall(() => DENIED);
    await expect(
      openFamilies(iptablesMode, one.kernel, { bindAddress: "10.0.0.5", serviceProxyName: "" }, one.log),
    ).rejects.toThrow(/^IPv4, the primary family \(of bindAddress: 10\.0\.0\.5\), cannot be served: .*run as root/);
    expect(await opened(one, "fd00::5")).toEqual([["IPv6"], { IPv4: expect.anything() }]);
    const off = kernel({});
    await expect(
      openFamilies(iptablesMode, off.kernel, { bindAddress: "fd00::5", serviceProxyName: "" }, off.log),
    ).rejects.toThrow("cannot be served: this kernel has no IPv6");
  });

  test("one has to work", async () => {
    const one = kernel({});
    one.tables.IPv4.faults.onCall(() => DENIED);
    await expect(
      openFamilies(iptablesMode, one.kernel, { bindAddress: "::", serviceProxyName: "" }, one.log),
    ).rejects.toThrow(/^cannot serve IPv4 or IPv6: IPv4: .*run as root.*; IPv6: this kernel has no IPv6$/);
  });
});

describe("the kernel settings of iptables mode", () => {
  const key = "net/ipv4/conf/all/route_localnet";

  test("route_localnet is set for node ports on 127.0.0.1, and only for them", async () => {
    for (const [flags, value] of [
      [[], "1"],
      [["--nodeport-addresses=localhost"], "1"],
      [["--nodeport-addresses=10.0.0.0/8"], "0"],
      // CVE-2020-8558: what is no loopback address must not open 127.0.0.0/8 to the network.
      [["--nodeport-addresses=primary"], "0"],
      [["--nodeport-addresses=primary", "--bind-address=127.0.0.1"], "0"],
      [["--nodeport-addresses=primary,::1/128"], "0"],
      [["--nodeport-addresses=127.0.0.5/32"], "1"],
      [["--nodeport-addresses=64.0.0.0/2"], "1"],
      [["--nodeport-addresses=::1/128"], "1"],
      [["--nodeport-addresses=primary,localhost"], "1"],
      [["--iptables-localhost-nodeports=false"], "0"],
    ] as const) {
      const one = kernel();
      await iptablesMode.prepare?.(configOf(flags), one.kernel, one.log);
      expect([flags, await one.sysctl.read(key)]).toEqual([flags, value]);
    }
  });

  test("that it cannot be set costs one line", async () => {
    const one = kernel();
    one.sysctl.readOnly = true;
    await iptablesMode.prepare?.(configOf([]), one.kernel, one.log);
    expect(one.log.lines).toMatchObject([{ level: "warn", fields: { name: "net.ipv4.conf.all.route_localnet" } }]);
  });

  test("one line for all counters that the kernel has not", async () => {
    const log = recordedLog();
    const counters = new CounterMaker(new FakeNfacct({ supported: false }), log);
    expect(await counters.ensure(["a", "b"])).toEqual(new Set());
    expect(await counters.ensure(["a", "b"])).toEqual(new Set());
    expect(log.lines).toHaveLength(1);
    const good = new CounterMaker(new FakeNfacct(), log);
    expect(await good.ensure(["a", "b"])).toEqual(new Set(["a", "b"]));
  });

  test("a counter is made once for both families' first syncs, and looked after in later ones", async () => {
    const nfacct = new FakeNfacct();
    const made: string[] = [];
    let now = 0;
    const ensure = (name: string) => {
      made.push(name);
      return nfacct.ensure(name);
    };
    const counters = new CounterMaker({ ensure, read: (name) => nfacct.read(name) }, recordedLog(), () => now);
    await Promise.all([counters.ensure(["a"]), counters.ensure(["a", "b"])]);
    expect(made).toEqual(["a", "b"]);
    now = 3_000;
    expect(await counters.ensure(["a", "b"])).toEqual(new Set(["a", "b"]));
    expect(made).toEqual(["a", "b", "a", "b"]);
  });
});

describe("--cleanup", () => {
  const foreign = "*nat\n:KUBE-ROUTER - [0:0]\n-A KUBE-ROUTER -j RETURN\n-A PREROUTING -j KUBE-ROUTER\nCOMMIT\n";

  test("removes ours of both families and nothing else", async () => {
    const one = kernel();
    const config = configOf([]);
    await one.tables.IPv4.meddle(foreign);
    const before = one.tables.IPv4.table("nat");
    const { families } = await openFamilies(iptablesMode, one.kernel, config, one.log);
    const node = { config, families, kernel: one.kernel, log: one.log, progress: new Progress() };
    for (const [family, backend] of (await iptablesMode.serve(node)).backends) {
      await backend.sync({
        family,
        groups: new Map(),
        node: { detector: { kind: "none" }, nodePortAddresses: { kind: "all" } },
        healthChecks: new Map(),
        foreignClusterIPs: new Set(),
        endpointCount: 0,
      });
    }
    expect(one.tables.IPv6.table("nat").chains.has("KUBE-SERVICES")).toBe(true);
    expect(await cleanUp(modes, one.kernel, one.log)).toBe(0);
    expect(one.tables.IPv4.table("nat")).toEqual(before);
    expect(one.tables.IPv6.table("nat").chains.has("KUBE-SERVICES")).toBe(false);
  });

  test("a family that fails does not keep the other from being cleaned, and the exit code says so", async () => {
    const one = kernel();
    one.tables.IPv4.faults.onCall(() => DENIED);
    expect(await cleanUp(modes, one.kernel, one.log)).toBe(1);
    expect(one.log.lines.map(({ level, fields }) => [level, fields["ipFamily"]])).toEqual([
      ["error", "IPv4"],
      ["info", "IPv6"],
    ]);
  });
});

describe("configuration that only the agent can judge", () => {
  test("an excluded CIDR is named as it was given, with the right form", () => {
    const settings = filterSettings(configOf(["--exclude-cluster-cidr=10.244.1.0/16,0.0.0.0/0"]));
    expect(settings.ok ? [] : settings.errors).toEqual([
      "--exclude-cluster-cidr=10.244.1.0/16: has host bits set; write 10.244.0.0/16",
      expect.stringMatching(/^--exclude-cluster-cidr=0\.0\.0\.0\/0: covers every IPv4 address/),
    ]);
  });

  test("a mode that is not there is never replaced in silence", async () => {
    const one = kernel();
    const without = modes.filter(({ facts }) => facts.name !== "nftables");
    await expect(chooseMode(without, configOf(["--proxy-mode=nftables"]), one.kernel, one.log)).rejects.toThrow(
      "this version of Fairlead has no nftables mode; use iptables, ipvs or userspace",
    );
  });
});

describe("ipvs mode", () => {
  test("runs where the kernel can do it, and the probe leaves no server behind", async () => {
    const one = kernel();
    const { mode, fallback } = await chooseMode(modes, configOf(["--proxy-mode=ipvs"]), one.kernel, one.log);
    expect([mode.facts.name, fallback]).toEqual(["ipvs", undefined]);
    expect(one.log.lines).toEqual([]);
    const left: unknown[] = [];
    for await (const server of one.kernel.ipvs.servers.save()) left.push(server);
    expect(left).toEqual([]);
  });

  test("falls back to iptables with a line that says what to do", async () => {
    const one = kernel(IPV6_ON, false);
    const { mode, fallback } = await chooseMode(modes, configOf(["--proxy-mode=ipvs"]), one.kernel, one.log);
    expect(mode.facts.name).toBe("iptables");
    expect(fallback).toContain("Can't initialize ipvs");
    expect(fallback).toContain("modprobe -a ip_vs ip_vs_rr");
    expect(one.log.messages("warn")).toEqual(["ipvs mode is not available on this node; serving in iptables mode"]);
  });

  test("--ipvs-fallback=false ends with the same", async () => {
    const one = kernel(IPV6_ON, false);
    const config = configOf(["--proxy-mode=ipvs", "--ipvs-fallback=false", "--ipvs-scheduler=sh"]);
    await expect(chooseMode(modes, config, one.kernel, one.log)).rejects.toThrow(/modprobe -a ip_vs ip_vs_sh/);
  });
});
