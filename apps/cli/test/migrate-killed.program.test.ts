import { join } from "node:path";
import { createRunner, lines } from "@fairlead/kernel";
import { afterEach, describe, expect, test } from "vitest";
import { type MigratedCluster, scenarioCluster, stopClusters } from "./support/kubeadm-cluster.ts";

import { fairlead as run } from "./support/run.ts";

const BUNDLE = join(import.meta.dirname, "..", "dist", "main.js");
// Of its own the program has the version of its build.
const NOW = ["--hold", "0", "--timeout", "0", "--image", "registry/fairlead:1"];
const APPLY = ["migrate", "--apply", ...NOW];
const REVERT = ["migrate", "--revert", ...NOW];

const fairlead = (argv: readonly string[], cluster: MigratedCluster) =>
  run(argv, { env: { KUBECONFIG: cluster.kubeconfig } });

afterEach(stopClusters);

const NODE = "node-a";
const untouched = () => scenarioCluster([NODE]);

async function migrated(): Promise<MigratedCluster> {
  const cluster = await untouched();
  expect(await fairlead(APPLY, cluster)).toMatchObject({ code: 0 });
  return cluster;
}

/** Runs the program, and kills it when so many of its changes have been carried out. */
async function killedAfter(changes: number, argv: readonly string[], cluster: MigratedCluster): Promise<void> {
  let pid = 0;
  let seen = 0;
  cluster.refuses = () => {
    seen += 1;
    if (seen === changes) process.kill(pid, "SIGKILL");
    return seen > changes;
  };
  const runner = createRunner({ env: { KUBECONFIG: cluster.kubeconfig } });
  const program = ["sh", "-c", 'echo "$$"; exec "$@"', "sh", process.execPath, BUNDLE, ...argv] as const;
  const ended = (async () => {
    for await (const line of lines(runner.stream(program, { timeoutMs: 0 }))) pid ||= Number(line);
  })();
  await expect(ended).rejects.toMatchObject({ reason: "signal", signal: "SIGKILL" });
  cluster.refuses = () => false;
}

/** What counts in the end: the objects without what the API server counts, and the pods of each node. */
function stateOf(cluster: MigratedCluster): readonly string[] {
  return cluster
    .objects()
    .map(({ metadata: { resourceVersion: _, generation: _count, ...metadata }, spec }) =>
      JSON.stringify({ ...metadata, spec }),
    )
    .toSorted();
}

function servedBy(node: string, cluster: MigratedCluster): readonly string[] {
  return ["kube-proxy", "fairlead"].filter((proxy) => cluster.get("Pod", `${proxy}-${node}`) !== undefined);
}

/** For each change that a whole run makes, all at once. */
async function afterEachChange(
  argv: readonly string[],
  before: () => Promise<MigratedCluster>,
  check: (cluster: MigratedCluster, whole: MigratedCluster, change: string) => Promise<void>,
): Promise<void> {
  const whole = await before();
  const already = whole.changes.length;
  expect(await fairlead(argv, whole)).toMatchObject({ code: 0 });
  const changes = Array.from({ length: whole.changes.length - already }, (_, at) => at + 1);
  expect(changes.length).toBeGreaterThan(5);
  const killed = changes.map(async (change) => {
    const cluster = await before();
    await killedAfter(change, argv, cluster);
    expect(servedBy(NODE, cluster), `change ${change}`).toHaveLength(1);
    await check(cluster, whole, `change ${change}`);
  });
  await Promise.all(killed);
}

describe("migrate, killed after each of its changes", () => {
  test.each([
    ["--apply", APPLY, untouched],
    ["--revert", REVERT, migrated],
  ])("%s: the node has one proxy, and another run comes to the same end", async (_flag, argv, before) => {
    await afterEachChange(argv, before, async (cluster, whole, change) => {
      expect(await fairlead(argv, cluster), change).toMatchObject({ code: 0, err: "" });
      expect(stateOf(cluster), change).toEqual(stateOf(whole));
    });
  });

  test("the way back from each of them leaves nothing", async () => {
    const never = await untouched();
    await afterEachChange(APPLY, untouched, async (cluster, _whole, change) => {
      expect(await fairlead(REVERT, cluster), change).toMatchObject({ code: 0, err: "" });
      expect(cluster.names(), change).toEqual(never.names());
      expect(servedBy(NODE, cluster), change).toEqual(["kube-proxy"]);
      const pods = cluster.objects().filter(({ metadata }) => metadata.name.startsWith("fairlead-check"));
      expect(pods, change).toEqual([]);
    });
  });
});
