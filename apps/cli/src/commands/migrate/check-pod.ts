import { setTimeout as sleep } from "node:timers/promises";
import { fieldsOf, itemsOf, stringOf } from "@fairlead/base";
import type { Cluster } from "../../cluster/cluster.ts";
import type { Container } from "../../cluster/pod-runner.ts";
import { inNamespace, PODS } from "../../cluster/resources.ts";
import { CommandFailure } from "../../frame/errors.ts";
import { checkPod } from "../../migrate/manifests/objects.ts";

/** Milliseconds until Fairlead's image is on the node and runs there, and between two looks. */
const START_MS = 120_000;
const LOOK_MS = 1_000;

/**
 * Has a pod of Fairlead's image on a node while it is used.
 *
 * @throws CommandFailure when it does not start
 */
export async function withCheckPod<T>(
  node: string,
  image: string,
  cluster: Cluster,
  signal: AbortSignal,
  use: (pod: Container) => Promise<T>,
): Promise<T> {
  const manifest = checkPod(node, image);
  const { name, namespace } = manifest.metadata;
  const pods = inNamespace(PODS, namespace);
  // One that a killed run has left may be ending.
  await cluster.remove(pods, name);
  try {
    await cluster.create(manifest);
    await ready(async () => fieldsOf(await cluster.get(pods, name)), `pod ${namespace}/${name}`, signal);
    return await use({ name, namespace, container: "check" });
  } finally {
    await cluster.remove(pods, name);
  }
}

type Pod = ReturnType<typeof fieldsOf>;

async function ready(look: () => Promise<Pod>, what: string, signal: AbortSignal): Promise<void> {
  const end = performance.now() + START_MS;
  for (;;) {
    const status = fieldsOf((await look())["status"]);
    const conditions = itemsOf(status["conditions"]).map(fieldsOf);
    if (conditions.some(({ type, status: is }) => type === "Ready" && is === "True")) return;
    if (performance.now() > end) {
      throw new CommandFailure(`${what} is not ready after ${START_MS / 1000} s${waitingFor(status)}`);
    }
    await sleep(LOOK_MS, undefined, { signal });
  }
}

/** `ErrImagePull: …`, as the kubelet says it. */
function waitingFor(status: Pod): string {
  const [container] = itemsOf(status["containerStatuses"]).map(fieldsOf);
  const { reason, message } = fieldsOf(fieldsOf(container?.["state"])["waiting"]);
  const said = [stringOf(reason), stringOf(message)].filter((text) => text !== undefined);
  return said.length === 0 ? "" : `: ${said.join(": ")}`;
}
