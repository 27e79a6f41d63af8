import type { AgentConfig } from "@fairlead/config";
import { expect, test } from "vitest";
import { fastPathDevices } from "../src/node/fast-path-devices.ts";
import { readState } from "../src/node/read-state.ts";
import { programs } from "./support/run.ts";

const veth = { linkinfo: { info_kind: "veth" } };
const bridge = (address: string) => ({ linkinfo: { info_kind: "bridge" }, addr_info: [{ local: address }] });
const DEVICES = [
  { ifindex: 1, ifname: "lo", addr_info: [{ local: "127.0.0.1" }] },
  { ifindex: 2, ifname: "eth0", addr_info: [{ local: "172.30.0.1" }] },
  { ifindex: 3, ifname: "eth1" },
  { ifindex: 4, ifname: "cali1", ...veth },
  { ifindex: 5, ifname: "cali2", ...veth },
  { ifindex: 6, ifname: "cni0", ...bridge("10.144.1.1") },
  { ifindex: 7, ifname: "veth1", ...veth, master: "cni0" },
  { ifindex: 8, ifname: "docker0", ...bridge("172.17.0.1") },
  { ifindex: 9, ifname: "veth2", ...veth, master: "docker0" },
  { ifindex: 10, ifname: "cali3", ...veth },
];
const SEEN: Readonly<Record<string, string>> = {
  "ip -json -details address show": JSON.stringify(DEVICES),
  "ip -json -4 route show": JSON.stringify([
    { dst: "default", nexthops: [{ dev: "eth0" }, { dev: "eth1" }] },
    { dst: "10.144.2.7", dev: "cali1" },
    { dst: "10.200.2.7", dev: "cali2" },
    { type: "blackhole", dst: "10.144.9.9", dev: "cali3" },
  ]),
  "ip -json -6 route show": JSON.stringify([{ dst: "fd00:10:144:2::7", dev: "cali1" }]),
};
const NETWORKS = {
  clusterCIDRs: ["10.144.0.0/16", "fd00:10:144::/48"],
  multiCNI: { excludeClusterCIDRs: ["10.200.0.1/16"], excludeCIDRsFrom: [], clusterCIDRsFrom: [] },
};

async function chosen(devices: readonly string[] | "auto", changed: object = {}, seen = SEEN) {
  const config = { nftables: { fastPath: { devices } }, ...NETWORKS, ...changed } as unknown as AgentConfig;
  return fastPathDevices(config, await readState(programs(seen), "programs"));
}

test("auto: pods by their routes, ports of the cluster's bridge, each uplink", async () => {
  const { devices, refused } = (await chosen("auto")) ?? expect.fail();
  expect([...devices]).toEqual([
    ["eth0", 2],
    ["eth1", 3],
    ["cali1", 4],
    ["veth1", 7],
  ]);
  expect([...refused]).toEqual([]);
});

test("auto: an address of pods in IPv6 is enough", async () => {
  const found = await chosen("auto", {}, { ...SEEN, "ip -json -4 route show": "[]" });
  expect([...(found?.devices.keys() ?? [])]).toEqual(["cali1", "veth1"]);
});

test("a name that meets a device of an excluded network leaves it out", async () => {
  const { devices, refused } = (await chosen(["cali*"])) ?? expect.fail();
  expect([...devices.keys()]).toEqual(["cali1", "cali3"]);
  expect([...refused]).toEqual([["cali2", "it belongs to an excluded network"]]);
});

const LEARNED = { source: "calico-ippools" };

test.each([
  ["auto without clusterCIDR", "auto", { clusterCIDRs: [] }, SEEN],
  ["auto with learned networks", "auto", { multiCNI: { ...NETWORKS.multiCNI, excludeCIDRsFrom: [LEARNED] } }, SEEN],
  ["devices that cannot be listed", ["cali*"], {}, { ...SEEN, "ip -json -details address show": "1: lo\n" }],
  ["an ip that cannot list routes", "auto", {}, { "ip -json -details address show": JSON.stringify(DEVICES) }],
] as const)("unknown: %s", async (_what, devices, changed, seen) => {
  expect(await chosen(devices, changed, seen)).toBeUndefined();
});
