import type { Cluster, WholeKubernetes } from "@fairlead/lab/provider/cluster";
import { parseDocument } from "yaml";
import { until } from "../until.ts";
import { kubectlSystem, whole } from "../whole-kubernetes.ts";

/**
 * Edits kube-proxy's file and has it taken over: each agent is a new one, on one node after the other.
 *
 * @param takeOver ends when every node has it
 * @throws Error where an agent was not replaced, or two were away at once
 */
export async function changeConfiguration(
  cluster: Cluster,
  takeOver: () => Promise<void>,
  withinMs: number,
): Promise<void> {
  const kubernetes = whole(cluster);
  const before = await agents(kubernetes);
  await edit(kubernetes, [cluster.mode, "syncPeriod"], "31s");
  let isOver = false;
  let mostAway = 0;
  const watched = until(
    "the change to be over",
    async () => {
      const ready = (await agents(kubernetes)).filter((one) => one.isReady);
      mostAway = Math.max(mostAway, before.length - ready.length);
      return isOver ? undefined : "under way";
    },
    withinMs,
  );
  await takeOver().finally(() => {
    isOver = true;
  });
  await watched;
  const after = await agents(kubernetes);
  const kept = after.filter(({ uid }) => before.some((one) => one.uid === uid));
  if (after.length !== before.length || kept.length > 0 || mostAway !== 1) {
    throw new Error(
      `wanted ${before.length} new agents, one away at a time; came ${after.length}, ${kept.length} as before, ${mostAway} away at once`,
    );
  }
}

async function edit(kubernetes: WholeKubernetes, path: readonly string[], value: string): Promise<void> {
  const file = "--output=jsonpath={.data.config\\.conf}";
  const { stdout } = await kubectlSystem(kubernetes, "get", "configmap", "kube-proxy", file);
  const document = parseDocument(stdout);
  document.setIn(path, value);
  const patch = JSON.stringify({ data: { "config.conf": document.toString() } });
  await kubectlSystem(kubernetes, "patch", "configmap", "kube-proxy", "--type=merge", `--patch=${patch}`);
}

interface Agent {
  readonly uid: string;
  readonly isReady: boolean;
}

/** Fairlead's pods. */
async function agents(kubernetes: WholeKubernetes): Promise<readonly Agent[]> {
  const selector = "--selector=app.kubernetes.io/name=fairlead";
  const row = "{.metadata.uid} {.status.conditions[?(@.type=='Ready')].status}";
  const table = `--output=jsonpath={range .items[*]}${row}{"\\n"}{end}`;
  const { stdout } = await kubectlSystem(kubernetes, "get", "pods", selector, table);
  return stdout
    .split("\n")
    .filter(Boolean)
    .map((line) => line.split(" "))
    .map(([uid = "", ready]) => ({ uid, isReady: ready === "True" }));
}
