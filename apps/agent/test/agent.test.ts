import { settled } from "@fairlead/base/testing";
import { node, type RawObject, service } from "@fairlead/testkit";
import { describe, expect, test } from "vitest";
import type { ForeignChanges } from "../src/modes/mode.ts";
import { followForeign } from "../src/run/run-agent.ts";
import { configOf, type Line, recordedLog } from "./support/fake-node.ts";
import {
  address,
  nodeA,
  ovn,
  type RunningAgent,
  type RunningAgentOptions,
  runningAgent,
  slice,
  web,
} from "./support/running-agent.ts";

function agent(options: RunningAgentOptions = {}): Promise<RunningAgent> {
  return runningAgent({ ...options, flags: ["--cluster-cidr=10.144.0.0/16", ...(options.flags ?? [])] });
}

async function serving(objects: readonly RawObject[], options: RunningAgentOptions = {}) {
  const one = await agent(options);
  await one.serve(...objects);
  return one;
}

const readFirst = (one: RunningAgent) => {
  const calls = one.faults.IPv4.calls.map(({ argv }) => argv);
  const written = calls.findIndex(([program]) => program.endsWith("-restore"));
  const before = written === -1 ? calls : calls.slice(0, written);
  return before.filter(([program]) => program.endsWith("-save")).map((argv) => argv.at(-1));
};

const toEndpoint = (ip: string) => expect.stringContaining(`--to-destination ${ip}:80`);

describe("an agent", () => {
  test("writes nothing before Services and EndpointSlices are both complete", async () => {
    const one = await agent();
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
      const one = await agent();
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
      expect(one.restores()).toBe(1);
    }
  });

  test("follows endpoints: at once when idle, then paced by minSyncPeriod", async () => {
    const one = await serving([web, slice("web", "10.144.0.1")]);
    const before = one.restores();
    await one.source.put(slice("web", "10.144.0.2"));
    await one.clock.advance(0);
    expect(one.nat()).toContainEqual(toEndpoint("10.144.0.2"));
    expect(one.restores()).toBe(before + 1);
    for (let i = 3; i < 9; i++) await one.source.put(slice("web", `10.144.0.${i}`));
    await one.clock.advance(999);
    expect(one.restores()).toBe(before + 1);
    await one.clock.advance(1);
    expect(one.restores()).toBe(before + 2);
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

  test("after a failed sync it converges, with the back-off of only that family", async () => {
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
    const one = await agent({ flags: mode });
    await one.list(unassigned, web, slice("web", "10.144.0.1"));
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

/** An agent whose mode follows what others do. */
function following(watchForeign: (notify: ForeignChanges) => Promise<void>) {
  const log = recordedLog();
  let checks = 0;
  const loop = { requestCheck: () => void checks++ };
  const { signal } = new AbortController();
  const done = followForeign({ watchForeign, config: configOf([]), log }, { loop }, signal);
  return { done, log, checks: () => checks };
}

test("what others may have changed is looked at now, and nothing is said before it is", async () => {
  const { checks, log } = following(async (notify) => {
    notify.changed();
    await settled();
    notify.changed();
  });
  await settled();
  expect(checks()).toBe(2);
  expect(log.lines).toEqual([]);
});

test("where nothing can be followed any more, a line says what still finds it", async () => {
  const { done, log } = following(() => Promise.reject(new Error("no multicast group")));
  await done;
  expect(log.lines).toMatchObject([{ level: "warn", fields: { syncPeriod: "30000ms", error: "no multicast group" } }]);
});
