import { FakeNodeAddresses } from "@fairlead/kernel/fake";
import { describe, expect, test } from "vitest";
import { detectorFor } from "../src/node/detectors.ts";
import { followAddresses } from "../src/node/follow-addresses.ts";
import { nodeIPs } from "../src/node/node-ips.ts";
import { nodePortAddressesFor } from "../src/node/node-port-addresses.ts";
import { address } from "./support/running-agent.ts";

describe("node IPs", () => {
  test("the bind address wins in its family, then the Node, then the kernel", () => {
    const kernel = { IPv4: "192.0.2.1", IPv6: "2001:db8::1" };
    const node = ["10.0.0.5", "10.0.0.6", "fd00::5"];
    expect(nodeIPs({ bindAddress: "0.0.0.0", node: [], kernel })).toEqual(kernel);
    expect(nodeIPs({ bindAddress: "0.0.0.0", node, kernel })).toEqual({ IPv4: "10.0.0.5", IPv6: "fd00::5" });
    expect(nodeIPs({ bindAddress: "10.9.9.9", node, kernel })).toEqual({ IPv4: "10.9.9.9", IPv6: "fd00::5" });
    expect(nodeIPs({ bindAddress: "::", node: [], kernel: {} })).toEqual({});
  });

  test("without a default route: the first address for others on an interface that is up", async () => {
    const addresses = new FakeNodeAddresses([
      address("127.0.0.1", "host"),
      { ...address("192.0.2.1"), up: false },
      address("169.254.1.1", "link"),
      address("10.201.0.10"),
      address("10.201.0.11"),
    ]);
    const stop = new AbortController();
    const found: unknown[] = [];
    const sourceAddress = async (family: string) => (family === "IPv6" ? "fd00:201::10" : undefined);
    await followAddresses({ addresses, sourceAddress }, stop.signal, (_all, ips) => {
      found.push(ips);
      stop.abort();
    });
    expect(found).toEqual([{ IPv4: "10.201.0.10", IPv6: "fd00:201::10" }]);
  });
});

describe("local traffic", () => {
  test("CIDRs are those of the family, none without one", () => {
    const detect = { kind: "cidrs", cidrs: ["10.144.0.0/16", "10.145.0.0/16", "fd00::/48"] } as const;
    expect(detectorFor("IPv4", detect, [])).toEqual({ kind: "cidrs", cidrs: ["10.144.0.0/16", "10.145.0.0/16"] });
    expect(detectorFor("IPv6", { kind: "cidrs", cidrs: ["10.144.0.0/16"] }, [])).toEqual({ kind: "none" });
  });

  test("NodeCIDR takes the Node's own, interfaces hold for both families", () => {
    expect(detectorFor("IPv6", { kind: "node-cidr" }, ["10.1.0.0/24", "fd01::/64"])).toEqual({
      kind: "cidrs",
      cidrs: ["fd01::/64"],
    });
    const bridge = { kind: "bridge", interface: "cbr0" } as const;
    expect(detectorFor("IPv6", bridge, [])).toEqual(bridge);
  });
});

describe("node-port addresses", () => {
  const live = ["127.0.0.1", "::1", "10.0.0.5", "10.0.1.5", "fd00::5", "fe80::1"];
  const ips = { IPv4: "10.0.0.5", IPv6: "fd00::5" };
  const list = (...addresses: string[]) => ({ kind: "list", addresses });

  test("CIDRs select what the node has now", () => {
    expect(nodePortAddressesFor("IPv4", ["10.0.0.0/23"], ips, live)).toEqual(list("10.0.0.5", "10.0.1.5"));
    expect(nodePortAddressesFor("IPv4", ["10.0.0.0/23"], ips, ["10.0.1.5"])).toEqual(list("10.0.1.5"));
    expect(nodePortAddressesFor("IPv6", ["fd00::/16"], ips, live)).toEqual(list("fd00::5"));
    expect(nodePortAddressesFor("IPv4", ["172.16.0.0/12"], ips, live)).toEqual(list());
  });

  test("the words", () => {
    expect(nodePortAddressesFor("IPv4", ["all"], ips, live)).toEqual({ kind: "all" });
    expect(nodePortAddressesFor("IPv6", ["10.0.0.0/8", "::/0"], ips, live)).toEqual({ kind: "all" });
    expect(nodePortAddressesFor("IPv4", ["primary"], ips, live)).toEqual(list("10.0.0.5"));
    expect(nodePortAddressesFor("IPv6", ["localhost", "primary"], ips, live)).toEqual(list("::1", "fd00::5"));
  });

  test("a family that no selector speaks of is served everywhere", () => {
    expect(nodePortAddressesFor("IPv6", ["10.0.0.0/8"], ips, live)).toEqual({ kind: "all" });
    expect(nodePortAddressesFor("IPv6", ["primary"], { IPv4: "10.0.0.5" }, live)).toEqual({ kind: "all" });
  });
});
