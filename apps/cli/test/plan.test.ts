import { goldenScenario } from "@fairlead/testkit";
import { expect, test } from "vitest";
import { fairlead } from "./support/run.ts";

test("CIDRs are given together or one by one", async () => {
  const plan = (...flags: readonly string[]) => {
    const node = ["--node", "node-a", "--node-address", "10.201.0.10"];
    return fairlead(["plan", "-f", "-", "--family", "ipv4", ...node, ...flags], {
      stdin: JSON.stringify(goldenScenario("01-clusterip").objects),
    });
  };
  const oneByOne = await plan("--cluster-cidr", "10.144.0.0/16", "--cluster-cidr", "fd00:144::/48");
  expect(oneByOne).toEqual(await plan("--cluster-cidr", "10.144.0.0/16,fd00:144::/48"));
  expect(oneByOne.out).toContain("! -s 10.144.0.0/16");
});
