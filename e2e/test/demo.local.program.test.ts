import { expect, test } from "vitest";
import { play, verdict } from "../src/demo/checks.ts";
import { localStage } from "../src/demo/local-stage.ts";
import { demoObjects } from "../src/demo/stage.ts";

const silent = () => undefined;

test("the demo proves what needs no rule with real requests, without root and namespaces", async () => {
  const stage = await localStage(demoObjects());
  const findings = await play(stage, silent);
  const left = await stage.close();
  expect(verdict(stage, findings, left)).toMatch(/^Proved with real requests to local ports, (\d+) of \1 checks/);
  expect(findings.length).toBeGreaterThanOrEqual(8);
});

test("it fails when the other network's service is served", async () => {
  const stage = await localStage(demoObjects());
  const rules = async () => [...(await stage.rules()), "default/nginx-ovn  TCP  127.0.0.1:1"];
  const findings = await play({ ...stage, rules }, silent);
  await stage.close();
  const failed = findings.filter(({ ok }) => !ok);
  expect(
    failed.map(({ name }) => name),
    JSON.stringify(failed),
  ).toEqual(["nginx-ovn"]);
});
