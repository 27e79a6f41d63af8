import { type Argv, CommandError, type Runner } from "@fairlead/kernel";
import { readTables, tableLines } from "@fairlead/netfilter/nft";
import { goldenScenario } from "@fairlead/testkit";
import { expect, test } from "vitest";
import { readKernelState } from "../src/node/kernel-state.ts";
import { listedRunner, printListings } from "../src/node/listings.ts";
import { tablesFromJson, tablesToJson } from "../src/node/table-json.ts";

const { iptables } = goldenScenario("09-loadbalancer");
const ADDRESSES = [
  {
    ifname: "eth0",
    flags: ["UP"],
    addr_info: [{ family: "inet", local: "10.201.0.10", prefixlen: 24, scope: "global" }],
  },
];

/** A node whose programs print this, and which notes what is started there. */
function nodeWith(more: Readonly<Record<string, string>> = {}): Runner & { readonly started: string[] } {
  const programs: Readonly<Record<string, string>> = {
    "iptables-nft-save": iptables,
    "iptables-nft-save -t mangle": "*mangle\n:KUBE-IPTABLES-HINT - [0:0]\nCOMMIT\n",
    "ip -json address": JSON.stringify(ADDRESSES),
    "ip -oneline address show dev kube-ipvs0": "",
    "ip -json -4 route show": JSON.stringify([{ dst: "10.144.0.0/16", dev: "cali1" }]),
    ...more,
  };
  const started: string[] = [];
  const run = async (argv: Argv) => {
    started.push(argv.join(" "));
    const stdout = programs[argv.join(" ")];
    if (stdout === undefined) throw new CommandError({ argv, reason: "not-found" });
    return { stdout, stderr: "" };
  };
  return {
    started,
    run,
    async *stream(argv) {
      yield (await run(argv)).stdout;
    },
  };
}

async function stateOf(runner: Runner) {
  const { ruleSet, environment } = await readKernelState(runner, "IPv4");
  const rules = [...ruleSet].map(([table, { chains }]) => [table, [...chains.values()].map((chain) => chain.rules)]);
  return { rules, local: environment.localAddresses, route: environment.outInterface?.("10.144.1.5") };
}

test("what the pod's own fairlead lists is all that is asked for, in one start", async () => {
  let listed = "";
  await printListings(nodeWith(), (text) => {
    listed += text;
  });
  const pod = nodeWith({ "fairlead __listings": listed });
  expect(await stateOf(await listedRunner(pod))).toEqual(await stateOf(nodeWith()));
  expect(pod.started).toEqual(["fairlead __listings"]);
});

test("tables of nftables are told by netlink, and by nft where a fairlead does not know how", async () => {
  const text = goldenScenario("09-loadbalancer").nft;
  const told = tablesToJson(readTables(text));
  const listed = { "nft list flowtables": "table ip kube-proxy {\n}\n", "nft list table ip kube-proxy": text };
  const seen = async (programs: Readonly<Record<string, string>>) =>
    (await readKernelState(nodeWith(programs), "IPv4")).nftables?.map((table) => [...tableLines(table)]);
  expect(await seen({ "fairlead __tables ip": told })).toEqual(await seen(listed));
  expect((await seen(listed))?.[0]?.length).toBeGreaterThan(50);
  expect(await seen({})).toEqual([]);
});

test("handles and unknown steps come through JSON", () => {
  const [table] = readTables("table ip t { chain c { limit rate 5/second ip saddr 10.0.0.1 drop # handle 7\n } }");
  if (table === undefined) throw new Error("there is a table");
  expect(tablesFromJson(tablesToJson([table]))).toEqual([table]);
  expect(table.chains.get("c")?.rules[0]?.handle).toBe(7n);
});

test("an image without it is asked program by program", async () => {
  const pod = nodeWith();
  expect(await stateOf(await listedRunner(pod))).toEqual(await stateOf(nodeWith()));
  expect(pod.started.length).toBeGreaterThan(5);
});
