import { expect, test } from "vitest";
import { goldenScenarios } from "../src/index.ts";

test("every scenario has its files in each mode", () => {
  const scenarios = goldenScenarios();
  expect(scenarios.length).toBeGreaterThanOrEqual(20);
  for (const { name, dualStack, iptables, ip6tables, ipvs, nft } of scenarios) {
    expect(iptables, name).toContain("*nat");
    expect(ip6tables !== undefined, name).toBe(dualStack);
    expect(ipvs, name).toContain("10.96.0.1");
    expect(nft, name).toContain("table ip kube-proxy");
  }
});

test("default/kubernetes stands in each recording as in the objects", () => {
  for (const { name, objects, iptables } of goldenScenarios()) {
    expect(
      objects.map((object) => object.metadata.name),
      name,
    ).toContain("kubernetes");
    expect(iptables, name).toContain("KUBE-SVC-NPX46M4PTMTKRN6Y");
  }
});
