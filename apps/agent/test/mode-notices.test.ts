import { VirtualClock } from "@fairlead/base/testing";
import { filterSettings } from "@fairlead/intake";
import {
  FakeConntrack,
  FakeDevices,
  FakeIptables,
  FakeNfacct,
  FakeNftables,
  FakeNodeAddresses,
  FakeRouting,
  FakeSysctl,
  FakeTracking,
} from "@fairlead/kernel/fake";
import { expect, test } from "vitest";
import type { Kernel } from "../src/kernel.ts";
import { modes } from "../src/modes/index.ts";
import { prepareNode } from "../src/start/node.ts";
import { fakeIpvs } from "./support/fake-ipvs.ts";
import { recordedLog } from "./support/recorded-log.ts";
import { configOf } from "./support/running-agent.ts";
import { ScriptedSource } from "./support/scripted-source.ts";

function kernelWith(supported: boolean): Kernel {
  const nfacct = new FakeNfacct();
  return {
    iptables: async (family) => new FakeIptables({ family, nfacct }),
    iptablesInUse: async () => [],
    ...fakeIpvs({ supported }),
    addresses: new FakeNodeAddresses(),
    devices: new FakeDevices(),
    testFlowtable: async () => ({ outcome: "passed" }),
    conntrack: new FakeConntrack(),
    tracking: async () => new FakeTracking(),
    nfacct,
    sysctl: new FakeSysctl({ "net/ipv6/conf/all/disable_ipv6": 0 }),
    nftables: async () => new FakeNftables(),
    removeNftTables: async () => [],
    routing: new FakeRouting(),
    hasNftTable: async () => false,
    sourceAddress: async () => undefined,
  };
}

/** What an agent says of its mode when it starts. */
async function started(flags: readonly string[], ipvsSupported = true) {
  const config = configOf(["--state-dir=/dev/null/none", ...flags]);
  const filter = filterSettings(config);
  if (!filter.ok) throw new Error(filter.errors.join("\n"));
  const events: { type: string; reason: string; action?: string; message: string }[] = [];
  const log = recordedLog();
  await prepareNode({
    config,
    filter: filter.options,
    nodeName: "node-a",
    kernel: kernelWith(ipvsSupported),
    modes,
    openSource: async () => ({
      source: () => new ScriptedSource(),
      events: {
        post: async (_, event) => {
          events.push(event as (typeof events)[number]);
          return 201;
        },
      },
    }),
    clock: new VirtualClock(),
    log,
    machine: { cores: 1, hashSizeFile: "/dev/null" },
  });
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
