import { settled } from "@fairlead/base/testing";
import type { ConntrackFlow } from "@fairlead/kernel";
import { endpointSlice, node, service } from "@fairlead/testkit";
import { afterEach, describe, expect, test } from "vitest";
import { type RunningAgent, runningAgent } from "./support/running-agent.ts";

const CLUSTER_IP = "10.96.67.75";
const web = service("web", { clusterIPs: [CLUSTER_IP], ports: [{ port: 80 }] });
const OWN = ["10.144.0.1", "10.144.0.2"] as const;
const FOREIGN = "10.244.0.1";

function slice(...endpoints: { readonly address: string; readonly ready?: boolean }[]) {
  return endpointSlice("web-1", { service: "web", family: "IPv4", ports: [{ port: 80 }], endpoints });
}

function entry(replySource: string, fields: Partial<ConntrackFlow> = {}): ConntrackFlow {
  const to = { originalDestination: CLUSTER_IP, originalPort: 80, replySource, replyPort: 80 };
  return { family: "IPv4", protocol: "TCP", ...to, ...fields };
}

let running: RunningAgent | undefined;

afterEach(async () => {
  await running?.stop();
  running = undefined;
});

/** An agent that serves the endpoints, with a connection to each of them and one that is no service's. */
async function serving(mode: string, flags: readonly string[], endpoints: readonly string[] = OWN) {
  const own = ["--cluster-cidr=10.144.0.0/16", "--exclude-cluster-cidr=10.244.0.0/16", "--mixed-services=all"];
  const one = runningAgent({ mode, flags: [`--proxy-mode=${mode}`, ...own, ...flags] });
  running = one;
  await settled();
  const addresses = endpoints.map((address) => ({ address }));
  await one.source.put(node("node-a", { zone: "z1", addresses: ["10.201.0.10"] }), web, slice(...addresses));
  await one.source.synced("services", "endpointSlices", "node");
  await one.clock.advance(5_000);
  one.conntrack.track(...endpoints.map((address) => entry(address)), entry(OWN[0], { originalDestination: OWN[0] }));
  const move = async (...next: Parameters<typeof slice>) => {
    await one.source.put(slice(...next));
    await one.clock.advance(5_000);
    await settled();
  };
  /** Who still answers the connections. */
  const answering = () => one.conntrack.entries.map(({ replySource }) => replySource);
  return { one, move, answering };
}

describe.each(["iptables", "nftables"])("in %s mode", (mode) => {
  test("connections to an endpoint that is gone lose their entries, others do not", async () => {
    const { move, answering } = await serving(mode, ["--reset-stale-tcp"]);
    await move({ address: OWN[0] }, { address: OWN[1], ready: false });
    expect(answering()).toEqual([...OWN, OWN[0]]);
    await move({ address: OWN[0] });
    expect(answering()).toEqual([OWN[0], OWN[0]]);
  });

  test("unless it is asked for, none do, and the entries of TCP are not read", async () => {
    const { one, move, answering } = await serving(mode, []);
    await move({ address: OWN[0] });
    expect(answering()).toEqual([...OWN, OWN[0]]);
    expect(one.conntrack.faults.calls.filter(({ argv }) => argv.includes("tcp"))).toEqual([]);
  });
});

test("in ipvs mode its destination goes, and entries of connection tracking are not read", async () => {
  const { one, move, answering } = await serving("ipvs", ["--reset-stale-tcp"]);
  const server = { family: "IPv4", protocol: "TCP", address: CLUSTER_IP, port: 80 } as const;
  const [first, second] = OWN.map((address) => ({ address, port: 80 }));
  if (first === undefined || second === undefined) throw new Error("no endpoints");
  one.ipvs.servers.connect(server, second, 1);
  const destinations = () =>
    one.ipvs.servers.servers().flatMap((each) => each.destinations.map(({ address, weight }) => [address, weight]));
  await move({ address: OWN[0] }, { address: OWN[1], ready: false });
  expect(destinations()).toEqual([
    [OWN[0], 1],
    [OWN[1], 0],
  ]);
  await move({ address: OWN[0] });
  expect(destinations()).toEqual([[OWN[0], 1]]);
  expect(answering()).toEqual([...OWN, OWN[0]]);
  expect(one.conntrack.faults.calls.filter(({ argv }) => argv.includes("tcp"))).toEqual([]);
});

test("an endpoint in another network that a service has no more keeps its connections", async () => {
  const { move, answering } = await serving("iptables", ["--reset-stale-tcp"], [...OWN, FOREIGN]);
  await move({ address: OWN[0] });
  expect(answering()).toEqual([OWN[0], FOREIGN, OWN[0]]);
});

test("while the kernel refuses the rules they stay, and go with the sync that it takes", async () => {
  const { one, move, answering } = await serving("iptables", ["--reset-stale-tcp"]);
  const stopFailing = one.faults.IPv4.onCall(() => ({ kind: "fail", exitCode: 4, stderr: "boom" }));
  await move({ address: OWN[0] });
  expect(answering()).toEqual([...OWN, OWN[0]]);
  stopFailing();
  await one.clock.advance(120_000);
  expect(answering()).toEqual([OWN[0], OWN[0]]);
});
