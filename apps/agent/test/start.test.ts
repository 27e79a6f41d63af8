import { DEVICE } from "@fairlead/backend-ipvs";
import { VirtualClock } from "@fairlead/base/testing";
import type { IPFamily } from "@fairlead/core";
import { filterSettings } from "@fairlead/intake";
import { FakeNfacct, FakeSysctl } from "@fairlead/kernel/fake";
import { node, type RawObject } from "@fairlead/testkit";
import { describe, expect, test } from "vitest";
import { modes } from "../src/modes/index.ts";
import { counterMaker, iptablesMode } from "../src/modes/iptables.ts";
import { cleanUp } from "../src/start/action.ts";
import { chooseMode, openFamilies } from "../src/start/choose-mode.ts";
import { prepareNode, warnOfDoubt } from "../src/start/node.ts";
import { StartError } from "../src/start/process.ts";
import { Progress } from "../src/sync/follower.ts";
import { configOf, emptyPlan, fakeIpvs, fakeKernel, filterOf, recordedLog } from "./support/fake-node.ts";
import { type RunningAgent, runningAgent, ScriptedSource, web } from "./support/running-agent.ts";

const IPV6_ON = { "net/ipv6/conf/all/disable_ipv6": 0, "net/ipv4/conf/all/route_localnet": 0 };

function nodeWith(sysctls: Readonly<Record<string, number>> = IPV6_ON, ipvsSupported = true) {
  const sysctl = new FakeSysctl(sysctls);
  return { ...fakeKernel({ sysctl, ...fakeIpvs({ supported: ipvsSupported }) }), sysctl, log: recordedLog() };
}

const DENIED = {
  kind: "fail",
  exitCode: 4,
  stderr: "Fatal: can't open lock file /run/xtables.lock: Permission denied",
} as const;

describe("families of the node", () => {
  const open = (one: ReturnType<typeof nodeWith>, bindAddress: string) =>
    openFamilies(iptablesMode, one.kernel, { bindAddress, serviceProxyName: "" }, one.log);
  const opened = async (one: ReturnType<typeof nodeWith>, bindAddress = "0.0.0.0") => {
    const { families, unserved } = await open(one, bindAddress);
    return [families, Object.fromEntries(unserved)];
  };

  test("both, where both work", async () => {
    const one = nodeWith();
    expect(await opened(one)).toEqual([["IPv4", "IPv6"], {}]);
    expect(one.log.lines).toEqual([]);
  });

  test.each([
    [{}, "this kernel has no IPv6"],
    [{ "net/ipv6/conf/all/disable_ipv6": 1 }, "IPv6 is turned off (sysctl net.ipv6.conf.all.disable_ipv6=1)"],
  ])("IPv6 is left out with one line: %j", async (sysctls, reason) => {
    const one = nodeWith(sysctls);
    expect(await opened(one)).toEqual([["IPv4"], { IPv6: reason }]);
    expect(one.log.lines).toMatchObject([{ level: "warn", fields: { ipFamily: "IPv6", reason } }]);
  });

  test("which one is the primary is not known by an unspecified address: either may be left out", async () => {
    const one = nodeWith();
    one.tables.IPv4.faults.onCall(() => DENIED);
    for (const unspecified of ["0.0.0.0", "::"]) {
      expect(await opened(one, unspecified)).toEqual([["IPv6"], { IPv4: expect.stringContaining("run as root") }]);
    }
  });

  test("that of the bind address has to work, and the error says what is missing", async () => {
    const one = nodeWith();
    one.tables.IPv4.faults.onCall(() => DENIED);
    await expect(open(one, "10.0.0.5")).rejects.toThrow(
      /^IPv4, the primary family \(of bindAddress: 10\.0\.0\.5\), cannot be served: .*run as root/,
    );
    expect(await opened(one, "fd00::5")).toEqual([["IPv6"], { IPv4: expect.anything() }]);
    const off = nodeWith({});
    await expect(open(off, "fd00::5")).rejects.toThrow("cannot be served: this kernel has no IPv6");
  });

  test("one has to work", async () => {
    const one = nodeWith({});
    one.tables.IPv4.faults.onCall(() => DENIED);
    await expect(open(one, "::")).rejects.toThrow(
      /^cannot serve IPv4 or IPv6: IPv4: .*run as root.*; IPv6: this kernel has no IPv6$/,
    );
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
      const one = nodeWith();
      await iptablesMode.prepare?.(configOf(flags), one.kernel, one.log);
      expect([flags, await one.sysctl.read(key)]).toEqual([flags, value]);
    }
  });

  test("that it cannot be set costs one line", async () => {
    const one = nodeWith();
    one.sysctl.readOnly = true;
    await iptablesMode.prepare?.(configOf([]), one.kernel, one.log);
    expect(one.log.lines).toMatchObject([{ level: "warn", fields: { name: "net.ipv4.conf.all.route_localnet" } }]);
  });

  test("one line for all counters that the kernel has not", async () => {
    const log = recordedLog();
    const counters = counterMaker(new FakeNfacct({ supported: false }), log);
    expect(await counters(["a", "b"])).toEqual(new Set());
    expect(await counters(["a", "b"])).toEqual(new Set());
    expect(log.lines).toHaveLength(1);
    const good = counterMaker(new FakeNfacct(), log);
    expect(await good(["a", "b"])).toEqual(new Set(["a", "b"]));
  });
});

describe("--cleanup", () => {
  const foreign = "*nat\n:KUBE-ROUTER - [0:0]\n-A KUBE-ROUTER -j RETURN\n-A PREROUTING -j KUBE-ROUTER\nCOMMIT\n";

  test("removes ours of both families and nothing else", async () => {
    const one = nodeWith();
    const config = configOf([]);
    await one.tables.IPv4.meddle(foreign);
    const before = one.tables.IPv4.table("nat");
    const { families } = await openFamilies(iptablesMode, one.kernel, config, one.log);
    const node = { config, families, kernel: one.kernel, log: one.log, progress: new Progress() };
    for (const [family, backend] of (await iptablesMode.serve(node)).backends) {
      await backend.sync(emptyPlan(family));
    }
    expect(one.tables.IPv6.table("nat").chains.has("KUBE-SERVICES")).toBe(true);
    expect(await cleanUp(modes, one.kernel, one.log)).toBe(0);
    expect(one.tables.IPv4.table("nat")).toEqual(before);
    expect(one.tables.IPv6.table("nat").chains.has("KUBE-SERVICES")).toBe(false);
  });

  test("a family that fails does not keep the other from being cleaned, and the exit code says so", async () => {
    const one = nodeWith();
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
    const one = nodeWith();
    const without = modes.filter(({ facts }) => facts.name !== "nftables");
    await expect(chooseMode(without, configOf(["--proxy-mode=nftables"]), one.kernel, one.log)).rejects.toThrow(
      "this version of Fairlead has no nftables mode; use iptables, ipvs or userspace",
    );
  });
});

describe("ipvs mode", () => {
  test("runs where the kernel can do it, and the probe leaves no server behind", async () => {
    const one = nodeWith();
    const { mode, fallback } = await chooseMode(modes, configOf(["--proxy-mode=ipvs"]), one.kernel, one.log);
    expect([mode.facts.name, fallback]).toEqual(["ipvs", undefined]);
    expect(one.log.lines).toEqual([]);
    const left: unknown[] = [];
    for await (const server of one.kernel.ipvs.servers.save()) left.push(server);
    expect(left).toEqual([]);
  });

  test("falls back to iptables with a line that says what to do", async () => {
    const one = nodeWith(IPV6_ON, false);
    const { mode, fallback } = await chooseMode(modes, configOf(["--proxy-mode=ipvs"]), one.kernel, one.log);
    expect(mode.facts.name).toBe("iptables");
    expect(fallback).toContain("Can't initialize ipvs");
    expect(fallback).toContain("modprobe -a ip_vs ip_vs_rr");
    expect(one.log.messages("warn")).toEqual(["ipvs mode is not available on this node; serving in iptables mode"]);
  });

  test("--ipvs-fallback=false ends with the same", async () => {
    const one = nodeWith(IPV6_ON, false);
    const config = configOf(["--proxy-mode=ipvs", "--ipvs-fallback=false", "--ipvs-scheduler=sh"]);
    await expect(chooseMode(modes, config, one.kernel, one.log)).rejects.toThrow(/modprobe -a ip_vs ip_vs_sh/);
  });
});

describe("the primary family", () => {
  let running: RunningAgent | undefined;

  interface Cluster {
    readonly families: readonly IPFamily[];
    readonly nodes: readonly RawObject[];
    readonly flags?: readonly string[];
  }

  /** Why an agent on such a node ended; "serves", when it wrote its rules. */
  async function fate({ families, nodes, flags = [] }: Cluster): Promise<string | undefined> {
    const all: readonly IPFamily[] = ["IPv4", "IPv6"];
    const unserved = new Map(all.filter((family) => !families.includes(family)).map((family) => [family, "no tools"]));
    const one = await runningAgent({ families, unserved, flags });
    running = one;
    one.addresses.remove("10.201.0.10");
    await one.list(web, ...nodes);
    await one.clock.advance(60_000);
    const wrote = families.some((family) =>
      one.faults[family].calls.some(({ argv: [program] }) => program.endsWith("-restore")),
    );
    if (wrote) return "serves";
    await one.clock.advance(2_000);
    return one.ended;
  }

  const nodeAt = (...addresses: string[]) => node("node-a", { addresses });
  const REFUSED = "IPv6, the primary family (of the Node's first address: fd00::5), cannot be served: no tools";

  test("a Node whose primary family cannot be served ends the agent, whatever the other one could do", async () => {
    expect(await fate({ families: ["IPv4"], nodes: [nodeAt("fd00::5")] })).toBe(REFUSED);
    expect(await fate({ families: ["IPv4"], nodes: [nodeAt("fd00::5", "10.201.0.10")] })).toBe(REFUSED);
  });

  test("the other family may be left out", async () => {
    expect(await fate({ families: ["IPv4"], nodes: [nodeAt("10.201.0.10", "fd00::5")] })).toBe("serves");
    expect(await fate({ families: ["IPv6"], nodes: [nodeAt("fd00::5", "10.201.0.10")] })).toBe("serves");
  });

  test("a Node that comes to have another primary family ends it, too", async () => {
    const flags = ["--cluster-cidr=10.144.0.0/16"];
    expect(await fate({ families: ["IPv4"], nodes: [nodeAt("10.201.0.10")], flags })).toBe("serves");
    await running?.source.put(nodeAt("fd00::5"));
    await running?.clock.advance(3_000);
    expect(await running?.ended).toBe(REFUSED);
  });

  test("a configuration for the other family only ends it before anything is written", async () => {
    const only = { families: ["IPv4"], nodes: [nodeAt("10.201.0.10")] } as const;
    expect(await fate({ ...only, flags: ["--cluster-cidr=fd00:144::/48"] })).toMatch(
      /^--cluster-cidr=fd00:144::\/48: is IPv6 only/,
    );
    expect(await fate({ ...only, families: ["IPv4", "IPv6"], flags: ["--cluster-cidr=fd00:144::/48"] })).toBe("serves");
    expect(running?.log.messages("warn")).toEqual([
      expect.stringMatching(/^--cluster-cidr=fd00:144::\/48: is IPv6 only/),
    ]);
  });
});

type NodeParts = Parameters<typeof prepareNode>[0];

function prepared(flags: readonly string[], parts: Pick<NodeParts, "kernel" | "openSource" | "log">) {
  const config = configOf(["--state-dir=/dev/null/none", ...flags]);
  const machine = { cores: 1, hashSizeFile: "/dev/null" };
  const clock = new VirtualClock();
  return prepareNode({ config, filter: filterOf(config), nodeName: "node-a", modes, clock, machine, ...parts });
}

describe("a start that fails", () => {
  const openSource: NodeParts["openSource"] = async () => ({ source: () => new ScriptedSource() });
  const noSource: NodeParts["openSource"] = () => Promise.reject(new StartError("no kubeconfig"));
  const refused = "cannot be served: IPv6 is turned off";
  const IPV6_OFF = { "net/ipv6/conf/all/disable_ipv6": 1, "net/ipv4/conf/all/route_localnet": 0 };

  test.each([
    ["iptables", noSource, "no kubeconfig"],
    ["ipvs", noSource, "no kubeconfig"],
    ["nftables", noSource, "no kubeconfig"],
    ["userspace", noSource, "no kubeconfig"],
    ["iptables", openSource, refused],
    ["ipvs", openSource, refused],
  ])("%s mode leaves the kernel as it is", async (mode, openSource, reason) => {
    const sysctl = new FakeSysctl(IPV6_OFF);
    const { kernel, faults, ipvs } = fakeKernel({ sysctl });
    const flags = [`--proxy-mode=${mode}`, "--bind-address=fd00::5"];
    await expect(prepared(flags, { kernel, openSource, log: recordedLog() })).rejects.toThrow(reason);
    expect(await sysctl.read("net/ipv4/conf/all/route_localnet")).toBe("0");
    expect(await ipvs.links.addresses(DEVICE)).toBeUndefined();
    // Even listing a table has iptables of the nft variant make it.
    if (openSource === noSource) expect([...faults.IPv4.calls, ...faults.IPv6.calls]).toEqual([]);
  });
});

describe("what an agent says of its mode", () => {
  async function started(flags: readonly string[], ipvsSupported = true) {
    const events: { type: string; reason: string; action?: string; message: string }[] = [];
    const log = recordedLog();
    const openSource: NodeParts["openSource"] = async () => ({
      source: () => new ScriptedSource(),
      events: {
        post: async (_, event) => {
          events.push(event as (typeof events)[number]);
          return 201;
        },
      },
    });
    await prepared(flags, { kernel: fakeKernel(fakeIpvs({ supported: ipvsSupported })).kernel, openSource, log });
    const said = events.filter(({ reason }) => reason !== "Starting" && reason !== "ModeFallback");
    return { events: said, log: log.lines.map(({ message }) => message) };
  }

  test("without a mode: kube-proxy's Event, and what becomes of the default", async () => {
    const { events, log } = await started([]);
    expect(events).toMatchObject([{ type: "Warning", reason: "KubeProxyDefaultMode", action: "StartKubeProxy" }]);
    const [{ message } = { message: "" }] = events;
    expect(message).toMatch(/^No proxy mode is set: using iptables\. .*Kubernetes 1\.40.*--proxy-mode=iptables/);
    expect(log).toContain(message);
  });

  test("ipvs mode: kube-proxy's Event says that it stays here", async () => {
    const { events, log } = await started(["--proxy-mode=ipvs"]);
    expect(events).toMatchObject([{ type: "Normal", reason: "IPVSDeprecation", action: "StartKubeProxy" }]);
    const [{ message } = { message: "" }] = events;
    expect(message).toMatch(/removes it in 1\.43\. Fairlead keeps/);
    expect(log).toContain(message);
  });

  test.each([["--proxy-mode=iptables"], ["--proxy-mode=nftables"], ["--proxy-mode=userspace"]])(
    "%s: nothing",
    async (flag) => {
      expect((await started([flag])).events).toEqual([]);
    },
  );

  test("a node that cannot do ipvs mode and is served in iptables mode: nothing but that", async () => {
    expect((await started(["--proxy-mode=ipvs"], false)).events).toEqual([]);
  });

  test("the second instance has its own default mode", async () => {
    expect((await started(["--service-proxy-name=edge"])).events).toEqual([]);
  });
});

describe("the node lock", () => {
  function said(lock: Parameters<typeof warnOfDoubt>[0]): readonly unknown[] {
    const lines: unknown[] = [];
    warnOfDoubt(lock, { warn: (message, fields) => void lines.push([message, fields]) });
    return lines;
  }

  test("an agent that holds the node lock never says that it serves without it", () => {
    expect(said({ held: true })).toEqual([]);
    const reason = "a process holds a lock like the agent's";
    expect(said({ held: true, doubt: reason })).toEqual([
      [expect.stringMatching(/^Another agent may be running on this node; the node lock is held/), { reason }],
    ]);
    expect(said({ held: false, doubt: "no folder" })).toEqual([
      [expect.stringMatching(/serving without the node lock$/), { reason: "no folder" }],
    ]);
  });
});
