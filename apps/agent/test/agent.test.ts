import { settled } from "@fairlead/base/testing";
import { Memory } from "@fairlead/endpoint-filter";
import { endpointSlice, node, type RawObject, service } from "@fairlead/testkit";
import { afterEach, describe, expect, test } from "vitest";
import type { Line } from "./support/recorded-log.ts";
import { address, type RunningAgent, type RunningAgentOptions, runningAgent } from "./support/running-agent.ts";

const web = service("web", { clusterIPs: ["10.96.67.75"], ports: [{ port: 80 }] });
const ovn = service("ovn", { clusterIPs: ["10.96.95.98"], ports: [{ port: 80 }] });
const nodeA = node("node-a", { zone: "z1", addresses: ["10.201.0.10"] });

function slice(name: string, ...addresses: string[]) {
  const endpoints = addresses.map((one) => ({ address: one }));
  return endpointSlice(`${name}-1`, { service: name, family: "IPv4", ports: [{ port: 80 }], endpoints });
}

let running: RunningAgent | undefined;

function agent(options: RunningAgentOptions = {}): RunningAgent {
  running = runningAgent({ ...options, flags: ["--cluster-cidr=10.144.0.0/16", ...(options.flags ?? [])] });
  return running;
}

/** An agent that serves these objects. */
async function serving(objects: readonly RawObject[], options: RunningAgentOptions = {}) {
  const one = agent(options);
  await settled();
  await one.source.put(nodeA, ...objects);
  await one.source.synced("services", "endpointSlices", "node");
  await one.clock.advance(5_000);
  return one;
}

afterEach(async () => {
  await running?.stop();
  running = undefined;
});

/** The tables that were read before anything was written, in order, and how often something was. */
const readFirst = (one: RunningAgent) => {
  const calls = one.faults.IPv4.calls.map(({ argv }) => argv);
  const written = calls.findIndex(isRestore);
  const before = written === -1 ? calls : calls.slice(0, written);
  return before.filter(([program]) => program.endsWith("-save")).map((argv) => argv.at(-1));
};
const restores = (one: RunningAgent) => one.faults.IPv4.calls.filter(({ argv }) => isRestore(argv)).length;
const isRestore = ([program = ""]: readonly string[]) => program.endsWith("-restore");

const toEndpoint = (ip: string) => expect.stringContaining(`--to-destination ${ip}:80`);

describe("an agent", () => {
  test("writes nothing before Services and EndpointSlices are both complete", async () => {
    const one = agent();
    await settled();
    await one.source.put(nodeA, web);
    await one.source.synced("node", "services");
    await one.source.put(slice("web", "10.144.154.71"));
    await one.clock.advance(600_000);
    expect(one.faults.IPv4.calls.filter(({ argv }) => !argv[0].endsWith("-save"))).toEqual([]);
    await one.source.synced("endpointSlices");
    await one.clock.advance(0);
    expect(one.nat()).toContainEqual(toEndpoint("10.144.154.71"));
  });

  test("reads the kernel while the lists come, and anew where they took long", async () => {
    for (const [seconds, reads] of [
      [4, ["filter", "nat"]],
      [5, ["filter", "nat", "filter", "nat"]],
    ] as const) {
      const one = agent();
      await settled();
      expect(readFirst(one)).toEqual([]);
      await one.source.put(nodeA, web);
      await settled();
      expect(readFirst(one)).toEqual(["filter", "nat"]);
      await one.source.put(ovn, slice("web", "10.144.154.71"));
      await one.clock.advance(seconds * 1_000);
      await one.source.synced("node", "services", "endpointSlices");
      await one.clock.advance(0);
      expect(readFirst(one)).toEqual(reads);
      expect(restores(one)).toBe(1);
      await one.stop();
    }
  });

  test("follows endpoints: at once when idle, then paced by minSyncPeriod", async () => {
    const one = await serving([web, slice("web", "10.144.0.1")]);
    const before = restores(one);
    await one.source.put(slice("web", "10.144.0.2"));
    await one.clock.advance(0);
    expect(one.nat()).toContainEqual(toEndpoint("10.144.0.2"));
    expect(restores(one)).toBe(before + 1);
    for (let i = 3; i < 9; i++) await one.source.put(slice("web", `10.144.0.${i}`));
    await one.clock.advance(999);
    expect(restores(one)).toBe(before + 1);
    await one.clock.advance(1);
    expect(restores(one)).toBe(before + 2);
    expect(one.nat()).toContainEqual(toEndpoint("10.144.0.8"));
    expect(one.nat()).not.toContainEqual(toEndpoint("10.144.0.2"));
  });

  test("a removed service leaves nothing, one without endpoints is refused", async () => {
    const one = await serving([web, slice("web", "10.144.0.1"), ovn]);
    expect(one.filter()).toContainEqual(expect.stringMatching(/10\.96\.95\.98\/32 .*REJECT/));
    await one.source.remove(web, slice("web", "10.144.0.1"), ovn);
    await one.clock.advance(60_000);
    expect([...one.nat(), ...one.filter()].join("\n")).not.toMatch(/10\.96\.(67\.75|95\.98)|KUBE-SVC|KUBE-SEP/);
  });

  test("after a failed sync it converges, with the back-off of that family alone", async () => {
    const one = await serving([web, slice("web", "10.144.0.1")], { families: ["IPv4", "IPv6"] });
    const fail = { kind: "fail", exitCode: 4, stderr: "boom" } as const;
    const stopFailing = one.faults.IPv6.onCall(() => fail);
    await one.clock.advance(30_000);
    await one.source.put(slice("web", "10.144.0.2"));
    await one.clock.advance(0);
    expect(one.nat()).toContainEqual(toEndpoint("10.144.0.2"));
    stopFailing();

    one.faults.IPv4.failNext(fail);
    await one.source.put(slice("web", "10.144.0.3"));
    await one.clock.advance(1_000);
    expect(one.nat()).toContainEqual(toEndpoint("10.144.0.2"));
    expect(one.log.messages("error")).toEqual([expect.stringContaining("Sync failed")]);
    await one.clock.advance(1_000);
    expect(one.nat()).toContainEqual(toEndpoint("10.144.0.3"));
  });

  const saysWhatWasMissing = expect.toSatisfy(
    ({ level, message }: Line) => level === "warn" && message.startsWith("Rules differ"),
  );

  test.each(["nat", "filter"] as const)("a flushed table %s is back within syncPeriod", async (table) => {
    for (const chains of [false, true]) {
      const one = await serving([web, slice("web", "10.144.0.1"), ovn]);
      const before = [one.nat(), one.filter()];
      one.tables.IPv4.flush(table, { chains });
      expect([one.nat(), one.filter()]).not.toEqual(before);
      await one.clock.advance(30_000);
      expect([one.nat(), one.filter()]).toEqual(before);
      expect(one.log.lines).toContainEqual(saysWhatWasMissing);
      await one.stop();
    }
  });

  test("a restore killed half way leaves the last state serving, the next one converges", async () => {
    const one = await serving([web, slice("web", "10.144.0.1"), ovn]);
    for (const transactions of [0, 1]) {
      one.faults.IPv4.failNext({ kind: "kill", transactions });
      await one.source.put(slice("web", `10.144.1.${transactions + 1}`), slice("ovn", "10.144.9.9"));
      await one.clock.advance(2_500);
      expect(one.nat()).toContainEqual(toEndpoint(`10.144.1.${transactions + 1}`));
    }
  });

  test("a second address of the node is a reason to sync, where it is selected", async () => {
    const nodePort = service("np", {
      type: "NodePort",
      clusterIPs: ["10.96.0.20"],
      ports: [{ port: 80, nodePort: 30_080 }],
    });
    const one = await serving([nodePort, slice("np", "10.144.0.1")], { flags: ["--nodeport-addresses=10.201.0.0/16"] });
    const dispatch = () =>
      one.nat().filter((rule) => rule.startsWith("-A KUBE-SERVICES") && rule.endsWith("-j KUBE-NODEPORTS"));
    expect(dispatch()).toEqual([expect.stringContaining("-d 10.201.0.10/32")]);
    one.addresses.add(address("10.201.0.11"), address("192.0.2.9"));
    await one.clock.advance(2_000);
    expect(dispatch()).toEqual([
      expect.stringContaining("-d 10.201.0.10/32"),
      expect.stringContaining("-d 10.201.0.11/32"),
    ]);
    one.addresses.remove("10.201.0.10");
    await one.clock.advance(2_000);
    expect(dispatch()).toEqual([expect.stringContaining("-d 10.201.0.11/32")]);
  });
});

describe("several pod networks", () => {
  const flags = ["--exclude-cluster-cidr=10.244.0.0/16"];

  test("nothing of a foreign service is in the kernel", async () => {
    const one = await serving([web, slice("web", "10.144.0.1"), ovn, slice("ovn", "10.244.0.5")], { flags });
    expect([...one.nat(), ...one.filter()].join("\n")).not.toMatch(/10\.96\.95\.98|10\.244\.|default\/ovn/);
  });

  test("a change of ownership is one line with service, from, to and why", async () => {
    const one = await serving([ovn, slice("ovn", "10.144.0.5")], { flags });
    expect(one.log.messages()).not.toContain("Ownership changed");
    await one.source.put(slice("ovn", "10.244.0.5"));
    await one.clock.advance(1_000);
    const lines = one.log.lines.filter(({ message }) => message === "Ownership changed");
    expect(lines.map(({ level, fields }) => [level, fields])).toEqual([
      ["info", { service: "default/ovn", ipFamily: "IPv4", from: "ours", to: "foreign", why: expect.any(String) }],
    ]);
  });

  test("a service without endpoints stays with whom the memory says", async () => {
    const memory = Memory.empty.set("default/ovn", "IPv4", "foreign");
    const one = await serving([web, ovn], { flags, memory });
    expect(one.filter().join("\n")).not.toContain("10.96.95.98");
    expect(one.filter().join("\n")).toContain("10.96.67.75");
  });

  test("UDP entries that our DNAT made are deleted once another network takes over, and no others", async () => {
    const dns = service("dns", { clusterIPs: ["10.96.0.10"], ports: [{ port: 53, protocol: "UDP" }] });
    const endpoints = (ip: string) =>
      endpointSlice("dns-1", {
        service: "dns",
        family: "IPv4",
        ports: [{ port: 53, protocol: "UDP" }],
        endpoints: [{ address: ip }],
      });
    const flow = {
      family: "IPv4",
      protocol: "UDP",
      originalDestination: "10.96.0.10",
      originalPort: 53,
      replyPort: 53,
    } as const;
    const ours = { ...flow, replySource: "10.144.0.1" };
    const theirs = { ...flow, replySource: "10.244.0.1" };
    const one = await serving([dns, endpoints("10.144.0.1")], { flags });
    one.conntrack.track(ours, theirs);
    await one.source.put(endpoints("10.244.0.1"));
    await one.clock.advance(1_000);
    expect(one.conntrack.entries).toEqual([theirs]);
  });
});

test("a UDP node port that loses its last endpoint lets its clients go, and other hosts' entries alone", async () => {
  const dns = service("dns", {
    type: "NodePort",
    clusterIPs: ["10.96.0.10"],
    ports: [{ port: 53, protocol: "UDP", nodePort: 30_053 }],
  });
  const slice = (...addresses: string[]) => {
    const ports = [{ port: 53, protocol: "UDP" as const }];
    const endpoints = addresses.map((each) => ({ address: each }));
    return endpointSlice("dns-1", { service: "dns", family: "IPv4", ports, endpoints });
  };
  const one = await serving([dns, slice("10.144.154.72")]);
  const entry = { family: "IPv4", protocol: "UDP", originalPort: 30_053 } as const;
  const client = { ...entry, originalDestination: "10.201.0.10", replySource: "10.144.154.72", replyPort: 53 };
  const other = { ...entry, originalDestination: "192.0.2.77", replySource: "192.0.2.77", replyPort: 30_053 };
  one.conntrack.track(client, other);
  await one.source.put(slice());
  await one.clock.advance(1_000);
  expect(one.conntrack.entries).toEqual([other]);
});

describe("stopping", () => {
  test("leaves the rules as they are", async () => {
    const one = await serving([web, slice("web", "10.144.0.1")]);
    const before = one.nat();
    expect(await one.stop()).toBeUndefined();
    expect(one.nat()).toEqual(before);
  });

  test("does not wait for a sync that hangs", async () => {
    const one = await serving([web, slice("web", "10.144.0.1")]);
    one.faults.IPv4.failNext({ kind: "delay", ms: 600_000 });
    await one.source.put(slice("web", "10.144.0.2"));
    await one.clock.advance(10);
    expect(await one.stop()).toBeUndefined();
  });
});

describe("local traffic by the Node's podCIDRs", () => {
  const unassigned = node("node-a", { addresses: ["10.201.0.10"] });
  const assigned = (...podCIDRs: string[]) => ({ ...unassigned, spec: { podCIDRs } });
  const mode = ["--detect-local-mode=NodeCIDR", "--cluster-cidr="];

  async function waiting() {
    const one = agent({ flags: mode });
    await settled();
    await one.source.put(unassigned, web, slice("web", "10.144.0.1"));
    await one.source.synced("services", "endpointSlices", "node");
    await one.clock.advance(60_000);
    return one;
  }

  test("waits for them, and ends when they change", async () => {
    const one = await waiting();
    expect(one.nat()).toEqual([]);
    await one.source.put(assigned("10.144.3.0/24"));
    await one.clock.advance(5_000);
    expect(one.nat().join("\n")).toContain("! -s 10.144.3.0/24 -d 10.96.67.75/32");
    await one.source.put(assigned("10.144.3.0/24"));
    await one.source.put(assigned("10.144.4.0/24"));
    expect(await one.ended).toBe("the podCIDRs of Node node-a changed from 10.144.3.0/24 to 10.144.4.0/24");
  });

  test("gives up after five minutes without them", async () => {
    const one = await waiting();
    await one.clock.advance(300_000);
    expect(await one.ended).toBe("Node node-a was given no podCIDRs, which detectLocalMode NodeCIDR needs");
    expect(one.nat()).toEqual([]);
  });
});
