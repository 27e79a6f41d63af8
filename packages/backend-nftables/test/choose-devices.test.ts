import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { chooseDevices } from "../src/index.ts";

type Device = Parameters<typeof chooseDevices>[1][number];

const PODS = ["10.144.0.0/16", "fd00:144::/48"];
const EXCLUDED = ["10.244.0.0/16"];
const facts = { bridgeFilter: false, pods: PODS, excluded: EXCLUDED };
const chosen = (all: readonly Device[], more: Partial<typeof facts> = {}) => [
  ...chooseDevices("auto", all, { ...facts, ...more }).devices.keys(),
];

describe("auto", () => {
  const device = (index: number, name: string, more: Partial<Device> = {}): Device => ({ index, name, ...more });

  test.each<[what: string, all: readonly Device[], expected: readonly string[]]>([
    [
      "veths of pods",
      [
        device(2, "cali1", { kind: "veth", routes: ["10.144.1.5/32"] }),
        device(3, "cali2", { kind: "veth", routes: ["fd00:144::5/128"] }),
        device(4, "veth3", { kind: "veth", routes: ["172.17.0.2/32"] }),
        device(5, "veth4", { kind: "veth", routes: ["10.144.9.0/24"] }),
        device(6, "veth5", { kind: "veth" }),
      ],
      ["cali1", "cali2"],
    ],
    [
      "ports of the pods' bridge, and not the bridge",
      [
        device(2, "cni0", { kind: "bridge", addresses: ["10.144.1.1"], routes: ["10.144.1.0/24"] }),
        device(3, "veth1", { kind: "veth", master: 2 }),
        device(4, "docker0", { kind: "bridge", addresses: ["172.17.0.1"] }),
        device(5, "veth2", { kind: "veth", master: 4 }),
      ],
      ["veth1"],
    ],
    [
      "uplinks, whatever they are",
      [
        device(2, "eth0", { routes: ["0.0.0.0/0", "10.244.7.0/24"] }),
        device(3, "bond0", { kind: "bond", routes: ["::/0"] }),
        device(4, "eth1", { routes: ["192.0.2.0/24"] }),
      ],
      ["eth0", "bond0"],
    ],
    [
      "vxlan devices that lead to pods",
      [
        device(2, "flannel.1", { kind: "vxlan", routes: ["10.144.2.0/24"] }),
        device(3, "other.1", { kind: "vxlan", routes: ["10.9.0.0/24"] }),
      ],
      ["flannel.1"],
    ],
  ])("chooses %s", (_what, all, expected) => {
    expect(chosen(all)).toEqual(expected);
  });

  test("chooses nothing of an excluded network, though it is within the pods' CIDRs", () => {
    const all = [
      device(2, "cali1", { kind: "veth", routes: ["10.144.1.5/32"] }),
      device(3, "cali2", { kind: "veth", routes: ["10.144.200.5/32"] }),
      device(4, "br", { kind: "bridge", addresses: ["10.144.200.1"] }),
      device(5, "port", { kind: "veth", master: 4 }),
    ];
    expect(chosen(all, { excluded: ["10.144.200.0/24"] })).toEqual(["cali1"]);
  });

  test("reports nothing: the operator has not asked for a certain device", () => {
    const all = [device(2, "br0", { kind: "bridge", routes: ["0.0.0.0/0"] })];
    const { devices, refused } = chooseDevices("auto", all, { ...facts, bridgeFilter: true });
    expect([devices.size, refused.size]).toEqual([0, 0]);
  });

  test("a name that selects a device of an excluded network is refused by name", () => {
    const all = [device(2, "cali1", { kind: "veth", routes: ["10.244.1.5/32"] })];
    expect([...chooseDevices(["cali*"], all, facts).refused]).toEqual([["cali1", "it belongs to an excluded network"]]);
  });
});

describe("whatever a node has", () => {
  const cidr = fc.constantFrom(
    ...["0.0.0.0/0", "::/0", "10.144.1.5/32", "fd00:144::5/128", "10.144.2.0/24", "10.244.1.5/32", "10.244.3.0/24"],
    ...["172.17.0.2/32", "192.0.2.0/24"],
  );
  const address = fc.constantFrom("10.144.1.1", "10.244.1.1", "172.17.0.1", "192.0.2.7", "fd00:144::1");
  const name = fc.constantFrom("cali1", "cali2", "lxc1", "cilium_host", "bpfin.cali", "eth0", "lo", "veth1", "cni0");
  const device = fc.record({
    name,
    kind: fc.constantFrom(undefined, "veth", "bridge", "vxlan", "openvswitch", "bond"),
    master: fc.option(fc.integer({ min: 1, max: 6 }), { nil: undefined }),
    routes: fc.array(cidr, { maxLength: 3 }),
    addresses: fc.array(address, { maxLength: 2 }),
  });
  const node = fc.uniqueArray(device, { selector: (one) => one.name, maxLength: 6 }).map((all) =>
    all.map(({ kind, master, ...one }, at) => ({
      ...one,
      index: at + 1,
      ...(kind !== undefined && { kind }),
      ...(master !== undefined && master !== at + 1 && { master }),
    })),
  );
  const wanted = fc.constantFrom<"auto" | readonly string[]>("auto", ["*"], ["cali*", "eth0"]);

  test("no device that must not be on the fast path is chosen", () => {
    fc.assert(
      fc.property(wanted, node, fc.boolean(), (asked, all, bridgeFilter) => {
        const { devices } = chooseDevices(asked, all, { ...facts, bridgeFilter });
        const has = (other: string) => all.some((one) => one.name === other);
        for (const one of all.filter((each) => devices.has(each.name))) {
          const owner = all.find(({ index }) => index === one.master);
          const isUplink = one.routes.some((route) => route.endsWith("/0"));
          const others = [...one.routes, ...one.addresses, ...(owner?.addresses ?? [])];
          expect(one.name).not.toBe("lo");
          expect(bridgeFilter && one.kind === "bridge").toBe(false);
          expect([one.kind, owner?.kind]).not.toContain("openvswitch");
          expect(has("cilium_host") && /^(cilium_|lxc)/.test(one.name)).toBe(false);
          expect(has("bpfin.cali") && one.name.startsWith("cali")).toBe(false);
          if (!isUplink) expect(others.filter((each) => each.startsWith("10.244."))).toEqual([]);
        }
      }),
    );
  });
});
