import { settled } from "@fairlead/base/testing";
import { node, type RawObject, service } from "@fairlead/testkit";
import { afterEach, describe, expect, test } from "vitest";
import { address, type RunningAgent, type RunningAgentOptions, runningAgent } from "./support/running-agent.ts";

const web = service("web", {
  type: "NodePort",
  clusterIPs: ["10.96.67.75"],
  ports: [{ port: 80, nodePort: 30_080 }],
});
const nodeA = node("node-a", { addresses: ["10.201.0.10"] });

let running: RunningAgent | undefined;

afterEach(async () => {
  await running?.stop();
  running = undefined;
});

/** An agent whose lists are complete, the Node's with these in it. */
async function listed(nodes: readonly RawObject[], options: RunningAgentOptions) {
  const one = runningAgent(options);
  running = one;
  await settled();
  await one.source.put(web, ...nodes);
  await one.source.synced("services", "endpointSlices");
  return one;
}

const written = (one: RunningAgent) =>
  one.faults.IPv4.calls.filter(({ argv: [program] }) => program.endsWith("-restore"));
const nodePortJumps = (one: RunningAgent) => one.nat().filter((rule) => rule.endsWith("-j KUBE-NODEPORTS"));

describe("the first listing of the node's addresses", () => {
  const slow = () => Promise.withResolvers<void>();
  const some = "--nodeport-addresses=10.201.0.0/24";

  test.each<[string, string]>([
    ["iptables", some],
    ["iptables", "--nodeport-addresses=all"],
    ["iptables", "--nodeport-addresses=primary"],
    ["iptables", "--nodeport-addresses=localhost"],
    ["ipvs", some],
    ["ipvs", "--nodeport-addresses=all"],
    ["userspace", "--nodeport-addresses=all"],
  ])("is waited for, however long it takes: %s %s", async (mode, flag) => {
    const { promise, resolve } = slow();
    const one = await listed([nodeA], { mode, flags: [flag], addressesAfter: promise });
    await one.source.synced("node");
    await one.clock.advance(120_000);
    expect(written(one)).toEqual([]);
    resolve();
    await settled();
    await one.clock.advance(1_000);
    expect(written(one)).not.toEqual([]);
  });
});

describe("the own Node", () => {
  /** The address that the kernel would send from is not the Node's. */
  const multiHomed = async (nodes: readonly RawObject[], ...flags: string[]) => {
    const one = await listed(nodes, { flags });
    one.addresses.add(address("192.0.2.7"));
    return one;
  };

  test("is waited for 30 s when its list does not come, as kube-proxy waits for its addresses", async () => {
    const one = await multiHomed([], "--nodeport-addresses=primary");
    await one.clock.advance(20_000);
    expect(written(one)).toEqual([]);
    await one.source.put(nodeA);
    await one.source.synced("node");
    await one.clock.advance(0);
    expect(nodePortJumps(one)).toEqual([expect.stringContaining("-d 10.201.0.10/32")]);
  });

  test("that has no address yet is waited for where primary needs one", async () => {
    const bare = node("node-a", { addresses: [] });
    const one = await multiHomed([bare], "--nodeport-addresses=primary");
    await one.source.synced("node");
    await one.clock.advance(20_000);
    expect(written(one)).toEqual([]);
    await one.source.put(nodeA);
    await one.clock.advance(0);
    expect(nodePortJumps(one)).toEqual([expect.stringContaining("-d 10.201.0.10/32")]);
  });

  test("that has no address yet is not waited for where nothing needs one", async () => {
    const one = await multiHomed([node("node-a", { addresses: [] })]);
    await one.source.synced("node");
    await one.clock.advance(0);
    expect(written(one)).not.toEqual([]);
  });

  test("that never comes is served without, with a line that says so", async () => {
    const one = await multiHomed([]);
    await one.clock.advance(29_999);
    expect(written(one)).toEqual([]);
    await one.clock.advance(1);
    expect(written(one)).not.toEqual([]);
    expect(one.log.messages("warn")).toEqual([
      "Node object not received; serving without its zone and with the kernel's source address",
    ]);
  });

  test("is not waited for in manifests, which may do without", async () => {
    const one = await multiHomed([], "--nodeport-addresses=primary", "--manifests=/dev/null/none");
    await one.source.synced("node");
    await one.clock.advance(0);
    expect(written(one)).not.toEqual([]);
  });
});
