import type { AgentConfig } from "@fairlead/config";
import { expect, test } from "vitest";
import type { CommandResult } from "../src/commands/doctor/command-result.ts";
import { fastPathFacts } from "../src/commands/doctor/fast-path.ts";
import { readState } from "../src/node/read-state.ts";
import { programs } from "./support/programs.ts";

const BOOT = "5a1f";
const table = (family: string, name: string, flowtable?: string, dev: readonly string[] = []) => [
  { table: { family, name } },
  ...(flowtable === undefined
    ? []
    : [{ flowtable: { family, table: name, name: flowtable, hook: "ingress", prio: 0, dev } }]),
];
const listing = (...objects: readonly object[]) => JSON.stringify({ nftables: objects });
const LINKS = [
  { ifindex: 2, ifname: "cni0", linkinfo: { info_kind: "bridge" }, addr_info: [{ local: "10.144.1.1" }] },
  { ifindex: 3, ifname: "cali1", linkinfo: { info_kind: "veth" } },
  { ifindex: 4, ifname: "ovs-system", linkinfo: { info_kind: "openvswitch" } },
  { ifindex: 5, ifname: "port1", linkinfo: { info_kind: "veth" }, master: "ovs-system" },
];
const SEEN = {
  "nft list flowtables": "table ip kube-proxy {\n}\ntable ip6 kube-proxy {\n}\ntable ip calico {\n}\n",
  "nft -j list table ip kube-proxy": listing(...table("ip", "kube-proxy", "fast-path", ["cali1", "cali2"])),
  "nft -j list table ip6 kube-proxy": listing(...table("ip6", "kube-proxy", "fast-path", ["cali1", "cali2"])),
  "nft -j list table ip calico": listing(...table("ip", "calico", "offload", ["cali2", "cali3"])),
  "ip -json -details address show": JSON.stringify(LINKS),
  "ip -json -4 route show": "[ ]",
  "ip -json -6 route show": "",
  "cat /proc/sys/net/netfilter/nf_flowtable_tcp_timeout": "30\n",
  "cat /proc/sys/net/bridge/bridge-nf-call-iptables": "1\n",
  "cat /proc/sys/kernel/random/boot_id": `${BOOT}\n`,
  "cat /run/fairlead/fast-path.json": JSON.stringify({ boot: BOOT, release: "6.12", outcome: "passed" }),
};

const NETWORKS = {
  clusterCIDRs: ["10.144.0.0/16"],
  multiCNI: { excludeClusterCIDRs: ["10.200.0.0/16"], excludeCIDRsFrom: [], clusterCIDRsFrom: [] },
};

/** What a node shows, but for what is said of it. */
async function facts(
  changed: Readonly<Record<string, string | CommandResult["kind"] | undefined>> = {},
  configured = {},
) {
  const config = {
    nftables: { fastPath: { devices: ["cali*", "cni0", "port*"] } },
    ...NETWORKS,
    ...configured,
    serviceProxyName: "",
    stateDir: "/run/fairlead",
  } as unknown as AgentConfig;
  const seen = { ...SEEN, ...changed };
  const printed = Object.entries(seen).flatMap(([argv, text]) => (text?.includes("seen") ? [] : [[argv, text ?? ""]]));
  const state = await readState(programs(Object.fromEntries(printed)), "programs");
  return fastPathFacts(config, state, async (...argv) => {
    const found = seen[argv.join(" ") as keyof typeof seen];
    if (found === "unseen") return { kind: "unseen" };
    return found === undefined || found === "absent" ? { kind: "absent" } : { kind: "seen", text: found };
  });
}

const NOTED = "cat /run/fairlead/fast-path.json";

test("devices of our flowtable, those that are left out, and another program's", async () => {
  expect(await facts()).toEqual({
    flowtables: true,
    test: { kind: "passed" },
    devices: ["cali1", "cali2"],
    refused: [
      { device: "cni0", reason: expect.stringContaining("it is a bridge") },
      { device: "port1", reason: "it belongs to Open vSwitch" },
    ],
    others: [{ table: "ip calico", flowtable: "offload", devices: ["cali2"] }],
  });
});

test.each([
  [
    "a kernel without flowtables",
    { "cat /proc/sys/net/netfilter/nf_flowtable_tcp_timeout": "absent" },
    { flowtables: false },
  ],
  [
    "no flowtable of ours",
    {
      "nft list flowtables": "table ip kube-proxy {\n}\n",
      "nft -j list table ip kube-proxy": listing(...table("ip", "kube-proxy")),
    },
    { devices: "no flowtable" },
  ],
  ["tables that may not be listed", { "nft list flowtables": "unseen" }, { devices: undefined, others: [] }],
  ["a result of before the boot", { "cat /proc/sys/kernel/random/boot_id": "77\n" }, { test: { kind: "none" } }],
  ["no result", { [NOTED]: "absent" }, { test: { kind: "none" } }],
  ["a result that is not JSON", { [NOTED]: "{" }, { test: { kind: "none" } }],
  ["a result that may not be read", { [NOTED]: "unseen" }, { test: { kind: "unknown" } }],
  [
    "a failed test",
    { [NOTED]: JSON.stringify({ boot: BOOT, outcome: "failed", reason: "no answer" }) },
    { test: { kind: "failed", reason: "no answer" } },
  ],
] as const)("%s", async (_what, changed, expected) => {
  expect(await facts(changed)).toMatchObject(expected);
});

test("auto without clusterCIDR", async () => {
  const nftables = { fastPath: { devices: "auto" } };
  const found = await facts({ "nft list flowtables": "" }, { nftables, clusterCIDRs: [] });
  expect(found).toMatchObject({ devices: "no flowtable", auto: expect.stringContaining("clusterCIDR"), refused: [] });
});

test("nothing is looked at where it is not configured", async () => {
  const config = { nftables: {}, serviceProxyName: "", stateDir: "" } as unknown as AgentConfig;
  expect(await fastPathFacts(config, { problems: {} }, async () => expect.unreachable())).toBeUndefined();
});
