import { type Argv, CommandError, type Runner } from "@fairlead/kernel";
import { goldenScenario } from "@fairlead/testkit";
import { expect, test } from "vitest";
import { readKernelState } from "../src/node/kernel-state.ts";
import { listedRunner, printListings } from "../src/node/listings.ts";

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

test("an image without it is asked program by program", async () => {
  const pod = nodeWith();
  expect(await stateOf(await listedRunner(pod))).toEqual(await stateOf(nodeWith()));
  expect(pod.started.length).toBeGreaterThan(5);
});
