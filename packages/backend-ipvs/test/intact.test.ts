import { parseServerCommand, type ServerCommand } from "@fairlead/netfilter";
import { webState } from "@fairlead/testkit/histories";
import { describe, expect, test } from "vitest";
import { DEVICE } from "../src/index.ts";
import { FakeNode, objectsOf, weights } from "./support/fake-node.ts";
import { type Live, live, worldOptions } from "./support/world.ts";

const MINUTE = 60_000;

/** Synced, and looked at: its rules were read. */
async function seen(): Promise<Live> {
  const made = await live([[[1, webState()]]], { node: new FakeNode({ largeTables: true }) });
  expect(await made.node.processes(() => looks(made))).toEqual(["iptables-legacy-save"]);
  return made;
}

async function looks(made: Live): Promise<void> {
  expect(await made.backend.difference(made.world.plan)).toBeUndefined();
}

/** Of as many characters as what it replaces. */
async function replaceRule({ node }: Live): Promise<void> {
  const rule = (mark: string) => `KUBE-MARK-MASQ -j MARK --or-mark ${mark}`;
  await node.rules.IPv4.meddle(`*nat\n-D ${rule("0x4000")}\n-A ${rule("0x8000")}\nCOMMIT\n`);
}

test("rules that no program has changed are not read again, and the check starts no process", async () => {
  const made = await seen();
  expect(await made.node.processes(() => looks(made))).toEqual([]);
});

test("what else is missing is repaired without a process", async () => {
  const made = await seen();
  made.node.links.meddle({ kind: "delete-device", device: DEVICE });
  expect(await made.backend.difference(made.world.plan)).toBeDefined();
  expect(await made.node.processes(() => made.sync())).toEqual([]);
  expect(await made.differences()).toEqual([]);
});

test("a rule that the kernel's numbers do not show is found after ten minutes", async () => {
  const made = await seen();
  await replaceRule(made);
  await looks(made);
  made.now += 11 * MINUTE;
  expect(await made.backend.difference(made.world.plan)).toBeDefined();
  await made.sync();
  expect(await made.differences()).toEqual([]);
});

test("after a failure all rules are written, whatever the kernel's numbers say", async () => {
  const made = await seen();
  await replaceRule(made);
  made.node.faults.failNext();
  await expect(made.change([[2, webState()]])).rejects.toThrow("injected fault");
  await made.sync();
  expect(await made.differences()).toEqual([]);
});

const deletesDevice = (node: FakeNode) => node.links.meddle({ kind: "delete-device", device: DEVICE });
const deletesAddress = (node: FakeNode) =>
  node.links.meddle({ kind: "delete-address", device: DEVICE, address: "10.96.3.1" });

function commands(...lines: readonly string[]): ServerCommand[] {
  return lines.flatMap((line) => parseServerCommand(line) ?? []);
}

/** Virtual servers and a set of another program. */
function nodeWithOthers(): FakeNode {
  const node = new FakeNode();
  node.servers.meddle(
    ...commands(
      "-A -t 192.0.2.200:443 -s wlc",
      "-a -t 192.0.2.200:443 -r 198.51.100.1:443 -g -w 5",
      "-A -u [fd00:200::1]:53 -s rr",
    ),
  );
  node.sets.meddle({ kind: "create", set: { name: "KUBE-ROUTER-X", type: "hash:ip", family: "IPv4" } });
  node.links.meddle(
    { kind: "add-device", device: "dummy0" },
    { kind: "add-address", device: "dummy0", address: "192.0.2.200" },
  );
  return node;
}

describe("what belongs to others stays", () => {
  test("through changes, syncs and cleanup", async () => {
    const node = nodeWithOthers();
    const before = objectsOf(node);
    const made = await live([[[1, webState({ type: "LoadBalancer" })]], [[1, undefined]], [[2, webState()]]], { node });
    await made.restart();
    for (const line of before) if (line !== "no device") expect(objectsOf(node)).toContain(line);
    await made.backend.cleanup();
    expect(objectsOf(node)).toEqual(before);
    expect(node.links.device("dummy0")).toEqual(new Set(["192.0.2.200"]));
  });

  test("and is no reason to sync", async () => {
    const made = await live([[[1, webState()]]], { node: nodeWithOthers() });
    expect(await made.backend.difference(made.world.plan)).toBeUndefined();
  });
});

describe("what an earlier proxy left", () => {
  test("on the service device, in our sets and for node ports goes", async () => {
    const old = await live([[[1, webState({ type: "LoadBalancer", externalIP: true })]]]);
    const made = await live([], { node: old.node });
    expect(await made.differences()).toEqual([]);
    expect(made.node.servers.servers()).toEqual([]);
  });

  test("inside excluded CIDRs stays, unless this process made it", async () => {
    const old = await live([[[1, webState()]]]);
    const made = await live([], { node: old.node, options: { excludeCIDRs: ["10.96.0.0/16"] } });
    expect([...weights(made.node).keys()]).toEqual(["-t 10.96.3.1:80"]);
    await made.change([[2, webState()]]);
    await made.change([[2, undefined]]);
    expect([...weights(made.node).keys()]).toEqual(["-t 10.96.3.1:80"]);
    await made.change([[2, webState()]]);
    made.world.change([[2, undefined]]);
    await made.sync();
    expect([...weights(made.node).keys()]).toEqual(["-t 10.96.3.1:80"]);
  });

  test("a server of ours with other options or destinations is made right", async () => {
    const node = new FakeNode();
    node.servers.meddle(
      ...commands(
        "-A -t 10.96.3.1:80 -s sh -p 99",
        "-a -t 10.96.3.1:80 -r 10.144.0.4:8080 -g -w 3",
        "-a -t 10.96.3.1:80 -r 198.51.100.9:1 -m -w 1",
      ),
    );
    const made = await live([], { node });
    made.world.change([[1, webState()]]);
    await made.sync();
    expect(await made.differences()).toEqual([]);
  });

  test("a set of our name and another type is reported, and nothing is written", async () => {
    const node = new FakeNode();
    node.sets.meddle({ kind: "create", set: { name: "KUBE-CLUSTER-IP", type: "hash:ip", family: "IPv4" } });
    await expect(live([], { node })).rejects.toThrow(
      "ipset KUBE-CLUSTER-IP has type hash:ip and must have hash:ip,port",
    );
    expect(node.links.device(DEVICE)).toBeUndefined();
  });
});

test("an address that another interface has is not put on the service device, and its server stands", async () => {
  const made = await live([[[1, webState({ type: "LoadBalancer" })]]]);
  expect(made.node.links.device(DEVICE)).toContain("203.0.113.1");
  await made.apply(made.world.setOptions(worldOptions(["10.201.0.10", "203.0.113.1"])));
  expect(made.node.links.device(DEVICE)).not.toContain("203.0.113.1");
  expect([...weights(made.node).keys()].sort()).toEqual([
    "-t 10.201.0.10:30002",
    "-t 10.96.3.1:80",
    "-t 203.0.113.1:30002",
    "-t 203.0.113.1:80",
  ]);
});

describe("what is found by looking", () => {
  test.each([
    ["a server deleted", (node: FakeNode) => node.servers.meddle(...commands("-D -t 10.96.3.1:80"))],
    [
      "a destination deleted",
      (node: FakeNode) => node.servers.meddle(...commands("-d -t 10.96.3.1:80 -r 10.144.0.4:8080")),
    ],
    ["a scheduler changed", (node: FakeNode) => node.servers.meddle(...commands("-E -t 10.96.3.1:80 -s sh"))],
    [
      "a member deleted",
      (node: FakeNode) => node.sets.meddle({ kind: "del", set: "KUBE-CLUSTER-IP", member: "10.96.3.1,tcp:80" }),
    ],
    ["a member added", (node: FakeNode) => node.sets.meddle({ kind: "add", set: "KUBE-IPVS-IPS", member: "10.0.0.1" })],
    ["an address deleted", deletesAddress],
    ["the device deleted", deletesDevice],
    ["rules flushed", (node: FakeNode) => node.rules.IPv4.flush("filter")],
    [
      "a rule added in between",
      (node: FakeNode) => node.rules.IPv4.meddle("*nat\n-I KUBE-SERVICES -j ACCEPT\nCOMMIT\n"),
    ],
    ["a chain emptied", (node: FakeNode) => node.rules.IPv4.meddle("*nat\n-F KUBE-POSTROUTING\nCOMMIT\n")],
    ["a rule deleted", (node: FakeNode) => node.rules.IPv4.meddle("*nat\n-F KUBE-MARK-MASQ\nCOMMIT\n")],
  ])("%s", async (_what, meddle) => {
    const made = await live([[[1, webState()]]]);
    expect(await made.backend.difference(made.world.plan)).toBeUndefined();
    await meddle(made.node);
    expect(await made.backend.difference(made.world.plan)).toBeDefined();
    await made.sync();
    expect(await made.differences()).toEqual([]);
  });

  test("a rule moved behind those that it should stand before, though number and size of the rules are the same", async () => {
    const made = await live([[[1, webState()]]]);
    expect(await made.backend.difference(made.world.plan)).toBeUndefined();
    const rule = "KUBE-POSTROUTING -m mark ! --mark 0x4000/0x4000 -j RETURN";
    await made.node.rules.IPv4.meddle(`*nat\n-D ${rule}\n-A ${rule}\nCOMMIT\n`);
    made.now += 600_001;
    expect(await made.backend.difference(made.world.plan)).toBeDefined();
    await made.sync();
    expect(await made.differences()).toEqual([]);
  });
});
