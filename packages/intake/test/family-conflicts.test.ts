import type { IPFamily } from "@fairlead/core";
import { describe, expect, test } from "vitest";
import { familyConflicts, primaryFamily } from "../src/index.ts";
import { configOf } from "./support.ts";

describe("the primary family", () => {
  const kernel = { IPv4: "192.0.2.1", IPv6: "2001:db8::1" };
  const node = ["fd00::5", "10.0.0.5"];

  test("is that of the bind address, else of the Node's first address", () => {
    expect(primaryFamily({ bindAddress: "10.9.9.9", node, kernel })).toEqual({
      family: "IPv4",
      source: "bindAddress",
      address: "10.9.9.9",
    });
    for (const bindAddress of ["0.0.0.0", "::"]) {
      expect(primaryFamily({ bindAddress, node, kernel })).toMatchObject({ family: "IPv6", source: "node" });
    }
  });

  test("is the kernel's without a Node, IPv4 where it has both or none", () => {
    const bare = { bindAddress: "::", node: [] };
    expect(primaryFamily({ ...bare, kernel })).toMatchObject({ family: "IPv4", address: "192.0.2.1" });
    expect(primaryFamily({ ...bare, kernel: { IPv6: "fd00::1" } })).toMatchObject({ family: "IPv6" });
    expect(primaryFamily({ ...bare, kernel: {} })).toEqual({ family: "IPv4", source: "kernel" });
  });
});

describe("what is configured for the other family only", () => {
  const both: readonly IPFamily[] = ["IPv4", "IPv6"];
  const four: readonly IPFamily[] = ["IPv4"];

  /** Upstream's verdicts: cmd/kube-proxy/app/server_test.go, Test_checkBadIPConfig and Test_checkBadConfig. */
  test.each<[readonly string[], readonly IPFamily[], readonly string[], string[], string[]]>([
    [["--cluster-cidr=10.0.0.0/8"], four, ["10.0.0.0/24"], [], []],
    [["--cluster-cidr=fd00::/8,10.0.0.0/8"], four, [], [], []],
    [["--cluster-cidr=fd00::/8"], both, [], [], ["--cluster-cidr=fd00::/8"]],
    [["--cluster-cidr=fd00::/8"], four, [], ["--cluster-cidr=fd00::/8"], []],
    [
      ["--cluster-cidr=fd00::/8", "--detect-local-mode=BridgeInterface", "--pod-bridge-interface=cbr0"],
      four,
      [],
      [],
      ["--cluster-cidr=fd00::/8"],
    ],
    [["--detect-local-mode=NodeCIDR"], both, ["fd00::/64"], ["the Node's spec.podCIDRs: fd00::/64"], []],
    [["--detect-local-mode=NodeCIDR"], four, ["fd00::/64", "10.0.0.0/24"], [], []],
    [[], four, ["fd00::/64"], [], ["the Node's spec.podCIDRs: fd00::/64"]],
    [["--nodeport-addresses=fd00::/8"], both, [], [], ["--nodeport-addresses=fd00::/8"]],
    [["--nodeport-addresses=fd00::/8,primary"], both, [], [], []],
    [["--nodeport-addresses=10.0.0.0/8"], both, [], [], []],
    [["--nodeport-addresses=10.0.0.0/8"], four, ["10.0.0.0/24", "fd00::/64"], [], []],
    [["--nodeport-addresses=10.0.0.0/8"], both, ["10.0.0.0/24", "fd00::/64"], [], ["--nodeport-addresses=10.0.0.0/8"]],
    [["--ipvs-exclude-cidrs=fd00::/8"], both, [], [], []],
    [["--ipvs-exclude-cidrs=fd00::/8"], four, [], [], ["--ipvs-exclude-cidrs=fd00::/8"]],
    [["--healthz-bind-address=[::]:10256"], four, [], [], []],
    [
      ["--healthz-bind-address=[fd00::5]:10256", "--metrics-bind-address=[::1]:10249"],
      four,
      [],
      [],
      ["--healthz-bind-address=fd00::5", "--metrics-bind-address=::1"],
    ],
  ])("%j on %j with podCIDRs %j", (flags, served, podCIDRs, fatal, warnings) => {
    const found = familyConflicts({ config: configOf(...flags), primary: "IPv4", served, podCIDRs });
    const upTo = (texts: readonly string[]) => texts.map((text) => text.slice(0, text.search(/: is IPv/)));
    expect([upTo(found.fatal), upTo(found.warnings)]).toEqual([fatal, warnings]);
  });

  test("the text says what would be right", () => {
    const config = configOf("--cluster-cidr=fd00::/8", "--nodeport-addresses=10.0.0.0/8");
    expect(familyConflicts({ config, primary: "IPv4", served: four, podCIDRs: [] }).fatal).toEqual([
      "--cluster-cidr=fd00::/8: is IPv6 only, but this node serves IPv4 only; add one of IPv4",
    ]);
    expect(familyConflicts({ config, primary: "IPv6", served: both, podCIDRs: [] }).warnings).toEqual([
      "--nodeport-addresses=10.0.0.0/8: is IPv4 only, but the node's primary family is IPv6; node ports are served on " +
        "all IPv6 addresses; add a CIDR of IPv6, or the word primary",
    ]);
  });
});
