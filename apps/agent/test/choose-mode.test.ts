import { settled } from "@fairlead/base/testing";
import type { IPFamily } from "@fairlead/core";
import { node, type RawObject, service } from "@fairlead/testkit";
import { afterEach, describe, expect, test } from "vitest";
import { address, type RunningAgent, runningAgent } from "./support/running-agent.ts";

describe("families", () => {
  const web = service("web", { clusterIPs: ["10.96.67.75", "fd00:96::75"], ports: [{ port: 80 }] });

  let running: RunningAgent | undefined;

  afterEach(async () => {
    await running?.stop();
    running = undefined;
  });

  interface Cluster {
    readonly families: readonly IPFamily[];
    readonly nodes: readonly RawObject[];
    readonly flags?: readonly string[];
    readonly addresses?: readonly string[];
  }

  /** Why an agent on such a node ended; "serves", when it wrote its rules. */
  async function fate({ families, nodes, flags = [], addresses = [] }: Cluster): Promise<string | undefined> {
    const all: readonly IPFamily[] = ["IPv4", "IPv6"];
    const unserved = new Map(all.filter((family) => !families.includes(family)).map((family) => [family, "no tools"]));
    const one = runningAgent({ families, unserved, flags });
    running = one;
    one.addresses.remove("10.201.0.10");
    one.addresses.add(...addresses.map((text) => address(text)));
    await settled();
    await one.source.put(web, ...nodes);
    await one.source.synced("services", "endpointSlices", "node");
    await one.clock.advance(60_000);
    const wrote = families.some((family) =>
      one.faults[family].calls.some(({ argv: [program] }) => program.endsWith("-restore")),
    );
    if (wrote) return "serves";
    await one.clock.advance(2_000);
    return one.ended;
  }

  const nodeA = (...addresses: string[]) => node("node-a", { addresses });
  const REFUSED = "IPv6, the primary family (of the Node's first address: fd00::5), cannot be served: no tools";

  test("a Node whose primary family cannot be served ends the agent, whatever the other one could do", async () => {
    expect(await fate({ families: ["IPv4"], nodes: [nodeA("fd00::5")] })).toBe(REFUSED);
    expect(await fate({ families: ["IPv4"], nodes: [nodeA("fd00::5", "10.201.0.10")] })).toBe(REFUSED);
  });

  test("the other family may be left out", async () => {
    expect(await fate({ families: ["IPv4"], nodes: [nodeA("10.201.0.10", "fd00::5")] })).toBe("serves");
    expect(await fate({ families: ["IPv6"], nodes: [nodeA("fd00::5", "10.201.0.10")] })).toBe("serves");
  });

  test("bindAddress says which is the primary, where it is an address", async () => {
    const nodes = [nodeA("fd00::5", "10.201.0.10")];
    expect(await fate({ families: ["IPv4"], nodes, flags: ["--bind-address=10.201.0.10"] })).toBe("serves");
    expect(await fate({ families: ["IPv4"], nodes, flags: ["--bind-address=0.0.0.0"] })).toBe(REFUSED);
  });

  test("without a Node it is that of the kernel's address, IPv4 where there are both or none", async () => {
    const six = { families: ["IPv4"], nodes: [], addresses: ["fd00::5"] } as const;
    expect(await fate(six)).toBe("IPv6, the primary family (of this node: fd00::5), cannot be served: no tools");
    expect(await fate({ ...six, addresses: ["fd00::5", "10.201.0.10"] })).toBe("serves");
    expect(await fate({ ...six, families: ["IPv6"], addresses: [] })).toBe(
      "IPv4, the primary family (of this node: none is known), cannot be served: no tools",
    );
  });

  test("a Node that comes to have another primary family ends it, too", async () => {
    const flags = ["--cluster-cidr=10.144.0.0/16"];
    expect(await fate({ families: ["IPv4"], nodes: [nodeA("10.201.0.10")], flags })).toBe("serves");
    await running?.source.put(nodeA("fd00::5"));
    await running?.clock.advance(3_000);
    expect(await running?.ended).toBe(REFUSED);
  });

  test("a configuration for the other family only ends it before anything is written", async () => {
    const only = { families: ["IPv4"], nodes: [nodeA("10.201.0.10")] } as const;
    expect(await fate({ ...only, flags: ["--cluster-cidr=fd00:144::/48"] })).toMatch(
      /^--cluster-cidr=fd00:144::\/48: is IPv6 only/,
    );
    expect(await fate({ ...only, families: ["IPv4", "IPv6"], flags: ["--cluster-cidr=fd00:144::/48"] })).toBe("serves");
    expect(running?.log.messages("warn")).toEqual([
      expect.stringMatching(/^--cluster-cidr=fd00:144::\/48: is IPv6 only/),
    ]);
  });
});
