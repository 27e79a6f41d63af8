import { kernelStateOf, type NodeState, nodeStateText, parseNodeState, STATE_PARTS, tablesOf } from "@fairlead/inspect";
import { tableLines } from "@fairlead/netfilter/nft";
import { goldenScenario } from "@fairlead/testkit";
import { expect, test } from "vitest";
import { readState, stateIn, stateText } from "../src/node/read-state.ts";
import { programs } from "./support/run.ts";

const { iptables } = goldenScenario("09-loadbalancer");
const ADDRESSES = [
  {
    ifname: "eth0",
    flags: ["UP"],
    addr_info: [{ family: "inet", local: "10.201.0.10", prefixlen: 24, scope: "global" }],
  },
];
const TABLE = `table ip kube-proxy { # handle 1
	set s { # handle 2
		type ipv4_addr
		flags interval
		elements = { 10.0.0.0/8 }
	}
	chain c { # handle 3
		limit rate 5/second drop # handle 7
	}
}
`;

const NODE = {
  "iptables-nft-save": iptables,
  "ip -json address": JSON.stringify(ADDRESSES),
  "ip -oneline address show dev kube-ipvs0": "5: kube-ipvs0    inet 10.96.0.1/32 scope global kube-ipvs0\n",
  "ip -json -4 route show": JSON.stringify([
    { dst: "10.144.0.0/16", dev: "cali1" },
    { type: "blackhole", dst: "10.9.9.9" },
  ]),
  "ip -json -6 route show": "",
  "nft list flowtables": "table ip kube-proxy {\n}\ntable inet firewalld {\n}\ntable ip filter {\n}\n",
  "nft -a list table ip kube-proxy": TABLE,
  "ipset save":
    "create KUBE-CLUSTER-IP hash:ip,port family inet\nadd KUBE-CLUSTER-IP 10.96.0.1,tcp:80 comment secret\n",
  "ls /proc/net/xt_recent": "web\n",
  "cat /proc/net/xt_recent/web": "src=10.0.0.1 ttl: 64 last_seen: 4294967300 oldest_pkt: 1 4294967300\n",
  "cat /proc/timer_list": "jiffies: 4294967396\n",
  "cat /proc/uptime": "300.1 1.0\n",
  "cat /proc/sys/net/netfilter/nf_conntrack_max": "262144\n",
  "uname -rm": "6.12.48 x86_64\n",
};
const node = (more: Readonly<Record<string, string>> = {}) => programs({ ...NODE, ...more });

function summary(state: NodeState) {
  const { ruleSet, environment } = kernelStateOf(state, "IPv4");
  const rules = [...ruleSet].map(([table, { chains }]) => [table, [...chains.values()].map((chain) => chain.rules)]);
  const tables = tablesOf(state, "IPv4")?.map((table) => [...tableLines(table)]);
  return { rules, tables, local: environment.localAddresses, route: environment.outInterface?.("10.144.1.5") };
}

test("a state is the same after it was JSON", async () => {
  const state = await readState(node(), "programs");
  const text = nodeStateText(state);
  expect(parseNodeState(text)).toEqual(state);
  expect(nodeStateText(parseNodeState(text))).toBe(text);
  expect(Object.keys(state).sort()).toEqual([...STATE_PARTS, "problems"].filter((one) => one in state).sort());
  expect(state.tables?.[0]?.chains.get("c")?.rules[0]?.handle).toBe(7n);
  expect(state.sets?.[0]?.members).toEqual(new Set(["10.96.0.1,tcp:80"]));
  expect(text).not.toContain("secret");
});

test("the pod's own fairlead gives all of it in one start", async () => {
  const state = await readState(node(), "programs");
  const argv = ["fairlead", "__state", ...STATE_PARTS].join(" ");
  const pod = node({ [argv]: nodeStateText(state) });
  expect(summary(await stateIn(pod))).toEqual(summary(state));
  expect(pod.started).toEqual([argv]);
});

test("an image without it is asked program by program", async () => {
  const pod = node();
  const state = await stateIn(pod);
  expect(summary(state)).toEqual(summary(await readState(node(), "programs")));
  expect(summary(state).tables?.[0]?.length).toBeGreaterThan(3);
  expect(state.tableNames).toContainEqual({ family: "inet", name: "firewalld" });
  expect(state).toMatchObject({
    serviceAddresses: ["10.96.0.1"],
    settings: { "net/netfilter/nf_conntrack_max": 262_144 },
    versions: { kernel: "6.12.48 x86_64" },
    recent: { web: { "10.0.0.1": [expect.any(Number)] } },
    routes: [
      { family: "IPv4", cidr: "10.144.0.0/16", devices: ["cali1"] },
      { family: "IPv4", cidr: "10.9.9.9/32", type: "blackhole", devices: [] },
    ],
  });
});

test("only what is asked for is read", async () => {
  const host = node();
  const state = await readState(host, "programs", ["addresses"]);
  expect(Object.keys(state)).toEqual(["addresses", "problems"]);
  expect(host.started).toEqual(["ip -json address"]);
});

test("a part that this version does not know is refused", async () => {
  await expect(stateText(["addresses", "bridges"], node())).rejects.toThrow("a node's state has no bridges");
});

test("a part that cannot be read says why", async () => {
  const state = await readState(programs({ "iptables-nft-save": iptables }), "programs");
  expect(state.tables).toBeUndefined();
  expect(state.problems.tables).toContain("nft");
  expect(() => kernelStateOf(state, "IPv4")).toThrow("ip");
  expect(() => kernelStateOf(state, "IPv6")).toThrow("ip6tables-nft-save");
});

test.each([
  ['{"format":2}', "format 2 of a node's state is not supported (supported: 1)"],
  ["x", "not the state of a node"],
  ["[]", "not the state of a node"],
  ['{"format":1,"problems":{},"addresses":[{"family":"IPv5"}]}', "addresses"],
])("refused: %s", (text, why) => {
  expect(() => parseNodeState(text)).toThrow(why);
});

test("what the format does not name is dropped", () => {
  const text =
    '{"format":1,"problems":{},"token":"x","routes":[{"family":"IPv4","cidr":"10.0.0.0/8","devices":[],"key":"x"}]}';
  expect(nodeStateText(parseNodeState(text))).not.toContain("x");
});
