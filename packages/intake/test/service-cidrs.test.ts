import { parseArguments } from "@fairlead/config";
import { ClusterState, type Problem } from "@fairlead/core";
import { createEndpointFilter } from "@fairlead/endpoint-filter";
import type { Subscription } from "@fairlead/watch";
import { describe, expect, test } from "vitest";
import { filterSettings, NodeInputs, subscriptions } from "../src/index.ts";
import { outermost } from "../src/node-inputs.ts";

function inputsOf(serviceCIDRs: boolean) {
  const parsed = parseArguments([], { readFile: () => "", version: "0.0.0" });
  if (parsed.kind !== "run") throw new Error(JSON.stringify(parsed));
  const filter = filterSettings(parsed.config);
  if (!filter.ok) throw new Error(filter.errors.join("\n"));
  return new NodeInputs({
    config: parsed.config,
    nodeName: "node-a",
    families: ["IPv4", "IPv6"],
    filter: createEndpointFilter(filter.options),
    mode: {
      semantics: { localSourcesShortCut: true, localWithoutEndpoints: "drop", withoutEndpoints: "reject" },
      needs: { iptables: [], nodeAddresses: false, serviceCIDRs, kernelParts: [], sysctls: [] },
    },
  });
}

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
  test("are told once their first list is in, all of them at each change", () => {
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

  test("are not asked for where nobody takes them", () => {
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

describe("what the planner is told", () => {
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
