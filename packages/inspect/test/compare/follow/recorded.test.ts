import { goldenScenarios } from "@fairlead/testkit";
import { describe, expect, test } from "vitest";
import { differencesIn, MODES, recorded } from "./support/recorded.ts";

describe.each(MODES)("what kube-proxy wrote in %s mode", (mode) => {
  const cases = goldenScenarios().flatMap((scenario) =>
    (scenario.dualStack ? (["IPv4", "IPv6"] as const) : (["IPv4"] as const)).map((family) => ({
      name: scenario.name,
      family,
      scenario,
    })),
  );

  test.each(cases)("$name $family: nothing differs", ({ scenario, family }) => {
    const recording = recorded(scenario, mode, family);
    expect(differencesIn(recording)).toEqual([]);
    expect(recording.plan.groups.size).toBeGreaterThan(0);
  });
});
