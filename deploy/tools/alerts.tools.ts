import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createRunner } from "@fairlead/kernel";
import { afterAll, beforeAll, expect, test } from "vitest";
import { deployDir } from "../src/paths.ts";

/** The alert rules as Prometheus' own promtool reads and evaluates them. */
const rules = join(deployDir, "helm/fairlead/monitoring/alerts.yaml");
const runner = createRunner();
let dir = "";
beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), "fairlead-alerts-"));
});
afterAll(() => rm(dir, { recursive: true }));

test("promtool takes them", async () => {
  expect((await runner.run(["promtool", "check", "rules", rules])).stdout).toContain("SUCCESS: 13 rules found");
});

/**
 * An agent in kube-proxy's DaemonSet that is down after an hour, another release's that is large, a shadow that finds a
 * difference, one that may not read a network's objects and holds what it has learned,
 * with many foreign services, and a program that is not an agent.
 */
const SERIES = [
  ['up{job="kube-proxy",instance="a"}', "1x59 0x60"],
  ['fairlead_build_info{job="kube-proxy",instance="a"}', "1x59 _x60"],
  ['process_resident_memory_bytes{job="second-release",instance="b"}', "900000000x120"],
  ['fairlead_build_info{job="second-release",instance="b"}', "1x120"],
  ['fairlead_shadow_differences{job="shadow",instance="d",ip_family="IPv4",kind="missing"}', "0x10 2x110"],
  ['fairlead_shadow_blind{job="shadow",instance="d",ip_family="IPv6"}', "0x10 1x110"],
  ['fairlead_cidr_source_state{job="learns",instance="e",source="kube-ovn-subnets",state="forbidden"}', "0x10 1x110"],
  ['fairlead_cidr_source_state{job="learns",instance="e",source="kube-ovn-subnets",state="listed"}', "1x10 0x110"],
  ['fairlead_held_cidrs{job="learns",instance="e"}', "0x10 7x110"],
  ['fairlead_many_foreign_services{job="learns",instance="e",ip_family="IPv6"}', "0x10 1x110"],
  ['up{job="kube-proxy",instance="c"}', "0x120"],
  ['process_resident_memory_bytes{job="others",instance="c"}', "900000000x120"],
].map(([series, values]) => ({ series, values }));

test.each([
  ["FairleadDown", { job: "kube-proxy", instance: "a", severity: "warning" }],
  ["FairleadShadowDiffers", { instance: "d", ip_family: "IPv4", kind: "missing", severity: "warning" }],
  ["FairleadShadowBlind", { instance: "d", ip_family: "IPv6", job: "shadow", severity: "warning" }],
  [
    "FairleadNetworkSourceUnreadable",
    { instance: "e", source: "kube-ovn-subnets", state: "forbidden", severity: "warning" },
  ],
  ["FairleadNetworkHeld", { job: "learns", instance: "e", severity: "warning" }],
  ["FairleadManyForeignServices", { job: "learns", instance: "e", ip_family: "IPv6", severity: "warning" }],
  ["FairleadMemoryHigh", { job: "second-release", instance: "b", severity: "warning" }],
])("%s fires for agents, whatever their names, and for no other program", async (alertname, labels) => {
  const file = join(dir, "test.yaml");
  const query = `ALERTS{alertname="${alertname}",alertstate="firing"}`;
  const sample = Object.entries({ alertname, alertstate: "firing", ...labels }).map(
    ([name, value]) => `${name}="${value}"`,
  );
  const exp_samples = [{ labels: `ALERTS{${sample.join()}}`, value: 1 }];
  const promql_expr_test = [{ expr: query, eval_time: "90m", exp_samples }];
  const tests = [{ interval: "1m", input_series: SERIES, promql_expr_test }];
  await writeFile(file, JSON.stringify({ rule_files: [rules], tests }));
  expect((await runner.run(["promtool", "test", "rules", file])).stdout).toContain("SUCCESS");
});
