import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { CLUSTER, iptables, SVC, stdin } from "./support/listed.ts";
import { fairlead } from "./support/run.ts";

describe("over a listing", () => {
  const file = (text: string, ...more: readonly string[]) =>
    fairlead(["verify", "-f", folder, "--rules", "-", ...CLUSTER, ...more], { stdin: text });

  let folder = "";
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "fairlead-verify-"));
    await writeFile(join(folder, "objects.json"), stdin);
  });
  afterAll(() => rm(folder, { recursive: true }));

  test("the real kube-proxy's rules are all there", async () => {
    const objectsFile = join(folder, "objects.json");
    const healthy = await fairlead(
      ["verify", "-f", objectsFile, "--rules", "-", "--node-address", "10.201.0.10", ...CLUSTER],
      { stdin: iptables },
    );
    expect(healthy).toMatchObject({ code: 0 });
    const renamed = iptables.replaceAll(SVC, "KUBE-SVC-ANOTHERNAMEANOTH");
    const other = await fairlead(
      ["verify", "-f", objectsFile, "--rules", "-", "--node-address", "10.201.0.10", ...CLUSTER],
      { stdin: renamed },
    );
    expect(other, "other names, the same traffic").toMatchObject({ code: 0 });
    const lost = renamed.replace("10.144.2.6:8080\n", "10.144.2.66:8080\n");
    const wrong = await fairlead(
      ["verify", "-f", objectsFile, "--rules", "-", "--node-address", "10.201.0.10", "-o", "json", ...CLUSTER],
      { stdin: lost },
    );
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
    const { code, err } = await file(iptables, ...more);
    expect(err).toContain(problem);
    expect(code).toBe(2);
  });
});
