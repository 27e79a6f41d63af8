import { describe, expect, test } from "vitest";
import { nodeIPs, nodePortAddressesFor, selectsIPv4Loopback } from "../src/index.ts";
import { detectorFor } from "../src/node-inputs.ts";

describe("node IPs", () => {
  test("the bind address wins in its family, then the Node, then the kernel", () => {
    const kernel = { IPv4: "192.0.2.1", IPv6: "2001:db8::1" };
    const node = ["10.0.0.5", "10.0.0.6", "fd00::5"];
    expect(nodeIPs({ bindAddress: "0.0.0.0", node: [], kernel })).toEqual(kernel);
    expect(nodeIPs({ bindAddress: "0.0.0.0", node, kernel })).toEqual({ IPv4: "10.0.0.5", IPv6: "fd00::5" });
    expect(nodeIPs({ bindAddress: "10.9.9.9", node, kernel })).toEqual({ IPv4: "10.9.9.9", IPv6: "fd00::5" });
    expect(nodeIPs({ bindAddress: "::", node: [], kernel: {} })).toEqual({});
  });

  test("a Node with addresses of one family has none in the other, whatever the kernel has", () => {
    const kernel = { IPv4: "192.0.2.1", IPv6: "2001:db8::1" };
    expect(nodeIPs({ bindAddress: "0.0.0.0", node: ["10.0.0.5"], kernel })).toEqual({ IPv4: "10.0.0.5" });
    expect(nodeIPs({ bindAddress: "fd00::9", node: ["10.0.0.5"], kernel })).toEqual({
      IPv4: "10.0.0.5",
      IPv6: "fd00::9",
    });
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
  });

  test("primary never means more than the node's own address, also where there is none", () => {
    const four = { IPv4: "10.0.0.5" };
    expect(nodePortAddressesFor("IPv6", ["primary"], four, live)).toEqual(list());
    expect(nodePortAddressesFor("IPv6", ["primary", "10.0.0.0/8"], four, live)).toEqual(list());
    expect(nodePortAddressesFor("IPv4", ["primary"], { IPv4: "127.0.0.1" }, live)).toEqual(list());
    expect(nodePortAddressesFor("IPv6", ["primary", "all"], four, live)).toEqual({ kind: "all" });
    expect(nodePortAddressesFor("IPv6", ["primary"], four, live, true), "kube-proxy's").toEqual({ kind: "all" });
    expect(nodePortAddressesFor("IPv4", ["primary"], four, live, true), "kube-proxy's").toEqual(list("10.0.0.5"));
  });

  test.each([
    [["all"], true],
    [["localhost"], true],
    [["127.0.0.5/32"], true],
    [["126.0.0.0/7"], true],
    [["fd00::/8"], true],
    [["10.0.0.0/8"], false],
    [["primary"], false],
    [["primary", "::1/128"], false],
  ])("whether %j can select an IPv4 loopback address", (selectors, expected) => {
    expect(selectsIPv4Loopback(selectors)).toBe(expected);
  });
});
