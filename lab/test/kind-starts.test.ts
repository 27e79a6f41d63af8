import { expect, test } from "vitest";
import { SharedStart, startedWith } from "../src/provider/kind/fairlead.ts";

test("the agents of a DaemonSet get another ConfigMap, flags after their own, and what they remember by its name", () => {
  const containers = [{ name: "fairlead", args: ["--state-dir=/var/lib/fairlead"] }];
  const volumes = [
    { name: "config", configMap: { name: "fairlead" } },
    { name: "run", hostPath: { path: "/run" } },
  ];
  const manifest = { kind: "DaemonSet", spec: { template: { spec: { containers, volumes } } } };
  expect(startedWith(manifest, "fairlead-1", { memory: "spec-1", flags: ["--v=3"] })).toMatchObject({
    spec: {
      template: {
        spec: {
          containers: [{ args: ["--state-dir=/var/lib/fairlead", "--state-dir=/var/lib/fairlead/spec-1", "--v=3"] }],
          volumes: [{ configMap: { name: "fairlead-1" } }, volumes[1]],
        },
      },
    },
  });
});

test("agents of all nodes that are started in another way are one change, and the same way again is none", async () => {
  const applied: unknown[] = [];
  const start = new SharedStart(async (how) => void applied.push(how));
  await start.apply({});
  const flags = ["--v=3"];
  expect(await Promise.all([start.change({ flags }), start.change({ flags })])).toEqual([true, true]);
  expect(await start.change({ flags })).toBe(false);
  expect(await start.change({})).toBe(true);
  expect(applied).toEqual([{}, { flags }, {}]);
});

test("a change that failed is tried again", async () => {
  let fails = true;
  const start = new SharedStart(() => (fails ? Promise.reject(new Error("no rollout")) : Promise.resolve()));
  await expect(start.change({ flags: ["--v=3"] })).rejects.toThrow("no rollout");
  fails = false;
  expect(await start.change({ flags: ["--v=3"] })).toBe(true);
});
