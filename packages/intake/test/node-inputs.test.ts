import { ClusterState, type ModeSemantics, type Problem } from "@fairlead/core";
import { createEndpointFilter } from "@fairlead/endpoint-filter";
import type { Subscription } from "@fairlead/watch";
import { describe, expect, test } from "vitest";
import {
  NodeInputs,
  nodeExclusions,
  nodeIPs,
  nodePortAddressesFor,
  selectsIPv4Loopback,
  subscriptions,
} from "../src/index.ts";
import { detectorFor, outermost } from "../src/node-inputs.ts";
import { configOf, filterOf } from "./support.ts";

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

const NODE = ["10.201.0.10", "fd00:201::10"];

test.each([
  ["10.244.0.0/16", []],
  ["10.201.0.0/16", ["10.201.0.10"]],
  ["10.244.0.0/16,fd00:201::/64,10.0.0.0/8", ["fd00:201::10", "10.201.0.10"]],
])("written excluded CIDRs with an address of the node are warned of: %s", (cidrs, addresses) => {
  const warnings = nodeExclusions(configOf(`--exclude-cluster-cidr=${cidrs}`), NODE);
  expect(warnings.map((line) => / contains (\S+), an address of this node/.exec(line)?.[1])).toEqual(addresses);
  for (const line of warnings) expect(line).toMatch(/^--exclude-cluster-cidr=/);
});

function inputsOf(serviceCIDRs: boolean, flags: readonly string[] = [], semantics: Partial<ModeSemantics> = {}) {
  const config = configOf(...flags);
  return new NodeInputs({
    config,
    nodeName: "node-a",
    families: ["IPv4", "IPv6"],
    filter: createEndpointFilter(filterOf(config)),
    mode: {
      semantics: {
        localSourcesShortCut: true,
        localWithoutEndpoints: "drop",
        withoutEndpoints: "reject",
        ...semantics,
      },
      needs: { iptables: [], nodeAddresses: false, serviceCIDRs, kernelParts: [], sysctls: [] },
    },
  });
}

test("a mode that serves node ports at all addresses ignores which are configured", () => {
  const flags = ["--nodeport-addresses=127.0.0.0/8"];
  const served = (semantics: Partial<ModeSemantics>) => inputsOf(false, flags, semantics).options().nodePortAddresses;
  expect(served({})).toMatchObject({ IPv4: { kind: "list" } });
  expect(served({ ignoresNodePortAddresses: true })).toMatchObject({ IPv4: { kind: "all" } });
});

/** What a source of objects would be asked for, and how it would give ServiceCIDRs. */
function followed() {
  const reported: (readonly string[])[] = [];
  const problems: Problem[] = [];
  const { serviceCIDRs: to } = subscriptions({
    state: new ClusterState(),
    problems: { object: (_kind, _namespace, _name, found) => problems.push(...found) },
    onChange: () => {},
    onNode: () => {},
    onSynced: () => {},
    onServiceCIDRs: (cidrs) => reported.push(cidrs),
  });
  if (to === undefined) throw new Error("not subscribed");
  const put = (name: string, ...cidrs: string[]) => give(to, name, { metadata: { name }, spec: { cidrs } });
  const remove = (name: string) => void to.onChange({ type: "delete", key: `/${name}` });
  return { reported, problems, put, remove, synced: () => void to.onChange({ type: "synced" }) };
}

function give<T>(to: Subscription<T>, name: string, raw: unknown) {
  const object = to.decode(raw);
  if (object !== undefined) void to.onChange({ type: "upsert", key: `/${name}`, object });
}

describe("ServiceCIDRs", () => {
  test("are reported once their first list is in, all of them at each change", () => {
    const { reported, put, remove, synced } = followed();
    put("kubernetes", "10.96.0.0/12", "fd00:10:96::/108");
    expect(reported).toEqual([]);
    synced();
    put("more", "10.200.0.0/16");
    remove("kubernetes");
    expect(reported).toEqual([
      ["10.96.0.0/12", "fd00:10:96::/108"],
      ["10.96.0.0/12", "fd00:10:96::/108", "10.200.0.0/16"],
      ["10.200.0.0/16"],
    ]);
  });

  test("a CIDR that two objects have stays until both are gone", () => {
    const { reported, put, remove, synced } = followed();
    synced();
    put("a", "10.96.0.0/16");
    put("b", "10.96.0.0/16");
    remove("a");
    expect(reported.at(-1)).toEqual(["10.96.0.0/16"]);
    remove("b");
    expect(reported.at(-1)).toEqual([]);
  });

  test("what is no CIDR is a problem of its object, and the others hold", () => {
    const { reported, problems, put, synced } = followed();
    synced();
    put("kubernetes", "10.96.0.0/33", "10.96.0.0/16");
    expect(reported.at(-1)).toEqual(["10.96.0.0/16"]);
    expect(problems).toMatchObject([{ kind: "ServiceCIDR", name: "kubernetes", field: "spec.cidrs[0]" }]);
  });

  test("are not asked for where no consumer takes them", () => {
    const { serviceCIDRs } = subscriptions({
      state: new ClusterState(),
      problems: { object: () => {} },
      onChange: () => {},
      onNode: () => {},
      onSynced: () => {},
    });
    expect(serviceCIDRs).toBeUndefined();
  });
});

describe("what the planner gets", () => {
  test("each family's own, and only a change of them matters", () => {
    const inputs = inputsOf(true);
    expect(inputs.options().serviceCIDRs).toBeUndefined();
    expect(inputs.setServiceCIDRs(["fd00:10:96::/108", "10.200.0.0/16", "10.96.0.0/12"])).toBe(true);
    expect(inputs.options().serviceCIDRs).toEqual({
      IPv4: ["10.96.0.0/12", "10.200.0.0/16"],
      IPv6: ["fd00:10:96::/108"],
    });
    expect(inputs.setServiceCIDRs(["10.96.0.0/12", "10.96.0.0/12", "10.200.0.0/16", "fd00:10:96::/108"])).toBe(false);
    expect(inputs.setServiceCIDRs([])).toBe(true);
    expect(inputs.options().serviceCIDRs).toEqual({ IPv4: [], IPv6: [] });
  });

  test("nothing, where the mode has no use for them", () => {
    const inputs = inputsOf(false);
    inputs.options();
    expect(inputs.setServiceCIDRs(["10.96.0.0/12"])).toBe(false);
    expect(inputs.options()).not.toHaveProperty("serviceCIDRs");
  });

  test.each([
    [
      ["10.96.0.0/16", "10.96.0.0/12", "10.112.0.0/16", "10.96.128.0/17"],
      ["10.96.0.0/12", "10.112.0.0/16"],
    ],
    [
      ["9.0.0.0/8", "10.0.0.0/8"],
      ["9.0.0.0/8", "10.0.0.0/8"],
    ],
    [["0.0.0.0/0", "10.0.0.0/8"], ["0.0.0.0/0"]],
    [
      ["fd00:1::/64", "fd00::/16", "fe00::/112"],
      ["fd00::/16", "fe00::/112"],
    ],
    [[], []],
  ])("of %j, %j are within no other", (cidrs, expected) => {
    expect(outermost(cidrs)).toEqual(expected);
    expect(outermost([...cidrs].reverse())).toEqual(expected);
  });
});
