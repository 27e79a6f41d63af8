import { describe, expect, test } from "vitest";
import { nodeReportsText, reportText } from "../src/commands/verify/run.ts";
import { plain } from "../src/frame/terminal.ts";
import { fileOf } from "./support/files.ts";
import { CLUSTER, iptables, SVC, stdin } from "./support/recorded.ts";
import { fairlead } from "./support/run.ts";

describe("over a listing", () => {
  const objects = fileOf(stdin, "objects.json");
  const verify = (rules: string, ...more: readonly string[]) =>
    fairlead(["verify", "-f", objects, "--rules", "-", ...CLUSTER, ...more], { stdin: rules });
  const ADDRESS = ["--node-address", "10.201.0.10"];

  test("the real kube-proxy's rules are all there", async () => {
    expect(await verify(iptables, ...ADDRESS)).toMatchObject({ code: 0 });
    const renamed = iptables.replaceAll(SVC, "KUBE-SVC-ANOTHERNAMEANOTH");
    expect(await verify(renamed, ...ADDRESS), "other names, the same traffic").toMatchObject({ code: 0 });
    const lost = renamed.replace("10.144.2.6:8080\n", "10.144.2.66:8080\n");
    const wrong = await verify(lost, ...ADDRESS, "-o", "json");
    expect(wrong.code, "other names, other traffic").toBe(1);
    expect(JSON.parse(wrong.out)).toMatchObject([
      { family: "IPv4", services: [{ service: "default/lbs", kind: "different" }] },
    ]);
  });

  test.each([
    [["--repair"], "--repair: a listing has no agent that could be asked"],
    [["--on", "node-a"], "mutually exclusive"],
    [["--mode", "ipvs"], "ipvs mode has more than rules"],
  ])("%s is refused with it", async (more, problem) => {
    const { code, err } = await verify(iptables, ...more);
    expect(err).toContain(problem);
    expect(code).toBe(2);
  });
});

const lost = { kind: "missing", where: "nat KUBE-SERVICES", what: "-j KUBE-SVC-X" } as const;
const differing = (...services: readonly (string | undefined)[]) => ({
  family: "IPv4" as const,
  planned: services.includes(undefined) ? 0 : 7,
  services: services.map((service) => ({
    ...(service !== undefined && { service }),
    kind: "different" as const,
    findings: [lost],
  })),
});
const lastLine = (text: string) => text.trimEnd().split("\n").at(-1);

test.each([
  [differing(), "OK: nothing differs (IPv4)"],
  [differing("shop/web"), "FAIL: 1 service differs; next: fairlead explain SERVICE"],
  [differing("shop/web", "shop/db"), "FAIL: 2 services differ; next: fairlead explain SERVICE"],
  [differing(undefined), "FAIL: what all services share differs; next: "],
])("verify ends with what it comes to: %#", (report, verdict) => {
  expect(lastLine(reportText([report], plain))).toMatch(new RegExp(`^${verdict.replaceAll(/[()]/g, "\\$&")}`));
});

test("rules of a family without services are not called all services", () => {
  expect(reportText([differing(undefined)], plain)).toMatch(
    /^base rules \(no service has this family\) IPv4: different/m,
  );
});

test("verify --all-nodes counts nodes", () => {
  const good = { node: "node-a", families: [differing()] };
  const bad = { node: "node-b", families: [differing("shop/web")] };
  expect(lastLine(nodeReportsText([good], plain))).toBe("OK: nothing differs on 1 node");
  const unseen = { node: "node-c", problem: "no agent runs there" };
  expect(lastLine(nodeReportsText([good, bad, unseen], plain))).toMatch(
    /^FAIL: 1 of 3 nodes differs, 1 of 3 nodes not looked at; next: /,
  );
});

test("doctor ends with a count, and not where its answer is for programs", async () => {
  const env = { KUBECONFIG: "/does/not/exist" };
  const { out, code } = await fairlead(["doctor", "--cluster-cidr", "10.144.0.0/16"], { env });
  expect(lastLine(out)).toMatch(/^FAIL: \d+ of \d+ checks bad, .*; next: do what → says/);
  expect(code).toBe(1);
  const json = await fairlead(["doctor", "--cluster-cidr", "10.144.0.0/16", "-o", "json"], { env });
  expect(Array.isArray(JSON.parse(json.out))).toBe(true);
});
