import { afterEach, expect, test } from "vitest";
import { scenarioCluster, stopClusters } from "./support/kubeadm-cluster.ts";
import type { MigratedCluster } from "./support/migrated-cluster.ts";
import { fairlead as run } from "./support/run.ts";

const NOW = ["--hold", "0", "--timeout", "0", "--skip-verify"];
const APPLY = ["migrate", "--apply", ...NOW];
const REVERT = ["migrate", "--revert", ...NOW];

const fairlead = (argv: readonly string[], cluster: MigratedCluster) =>
  run(argv, { env: { KUBECONFIG: cluster.kubeconfig } });

afterEach(stopClusters);

const untouched = () => scenarioCluster(["node-a"]);

async function migrated(): Promise<MigratedCluster> {
  const cluster = await untouched();
  expect(await fairlead(APPLY, cluster)).toMatchObject({ code: 0 });
  return cluster;
}

test.each([
  ["--apply", APPLY, untouched],
  ["--revert", REVERT, migrated],
])("%s: whichever change the API server refuses, it says what to do, and then goes on", async (_flag, argv, before) => {
  for (let last = false, at = 1; !last; at++) {
    const cluster = await before();
    let seen = 0;
    cluster.refuses = () => ++seen === at;
    const { code, err } = await fairlead(argv, cluster);
    last = seen < at;
    if (last) continue;
    expect({ code, err }, `change ${at}`).toEqual({
      code: 3,
      err: expect.stringMatching(/^Stopped: .*killed\nCorrect that and run the command again: it continues\.\n$/),
    });
    cluster.refuses = () => false;
    expect(await fairlead(argv, cluster), `change ${at}`).toMatchObject({ code: 0, err: "" });
  }
});

test("two at once: whenever the second comes, everything is changed once", async () => {
  const changesOf = (cluster: MigratedCluster) => cluster.changes.map(({ method, path }) => `${method} ${path}`);
  const alone = await migrated();
  for (let at = 1; at <= alone.changes.length; at++) {
    const cluster = await untouched();
    let seen = 0;
    let second: ReturnType<typeof fairlead> | undefined;
    cluster.refuses = () => {
      if (++seen === at) second = fairlead(APPLY, cluster);
      return false;
    };
    expect(await fairlead(APPLY, cluster), `change ${at}`).toMatchObject({ code: 0, err: "" });
    // It is refused, or comes when the first one has ended.
    const err = (await second)?.err;
    expect(err, `change ${at}`).toMatch(/^(?:another run is changing this cluster: process \d+ on .*\n)?$/);
    expect(changesOf(cluster), `change ${at}`).toEqual(changesOf(alone));
  }
});

test("two at the same moment: one of them does it all", async () => {
  const cluster = await untouched();
  const ended = await Promise.all([fairlead(APPLY, cluster), fairlead(APPLY, cluster)]);
  expect(ended.map(({ code }) => code)).toContain(0);
  expect(cluster.changes).toHaveLength((await migrated()).changes.length);
});
