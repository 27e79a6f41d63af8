import { expect, test } from "vitest";
import type { PlannedSpec } from "../src/command/plan.ts";
import { listText, withoutToken } from "../src/command/run.ts";
import { durationKey, type Outcome, withOutcomes } from "../src/report.ts";
import type { Spec } from "../src/specs/spec.ts";

const planned = (name: string, more: Partial<Spec> = {}, unfit?: string): PlannedSpec => ({
  spec: { name, suite: "services", run: async () => undefined, ...more },
  family: "IPv4",
  title: `${name} [IPv4]`,
  unfit,
});

const outcome = (name: string, ms: number, result: Outcome["result"]): Outcome => ({
  name,
  suite: "services",
  mode: "iptables",
  family: "IPv4",
  ms,
  result,
});

test("a list has each spec, what it needs, and how long it took the last time that it passed", () => {
  const before = { [durationKey("iptables", "hairpin [IPv4]")]: 9_000 };
  const durations = withOutcomes(before, [
    outcome("hairpin", 2_540, { kind: "passed" }),
    outcome("drain", 60_000, { kind: "failed", message: "no answer" }),
  ]);
  const specs = [
    planned("hairpin"),
    planned("drain", { alone: true }),
    planned("second network", {}, "one network only"),
  ];
  expect(listText("iptables", specs, durations).split("\n")).toEqual([
    "     2.5 s  services      hairpin [IPv4]",
    "         –  services      drain [IPv4] (runs by itself)",
    "         –  services      second network [IPv4] (not here: one network only)",
    "",
    "  1 of 3 have run in this checkout, 0.0 minutes one after the other; up to three run at once",
  ]);
  expect(listText("nftables", specs, durations)).toContain("none has run in this checkout yet");
});

test("what a failure keeps and prints is without the cluster's token", () => {
  const text = 'env TOKEN=s3cret vitest: exit code 1; Authorization: "Bearer s3cret"';
  expect(withoutToken(text, { apiServer: { token: "s3cret" } })).toBe(
    'env TOKEN=[token] vitest: exit code 1; Authorization: "Bearer [token]"',
  );
});
