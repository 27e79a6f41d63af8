import {
  FAIRLEAD,
  fairleadObjects,
  fingerprint,
  type Installation,
  MANAGED_BY_LABEL,
  MANAGER,
  type MigrationPort,
  migrationState,
  NAMESPACE,
  PROBLEM_ANNOTATION,
  PROVEN_ANNOTATION,
  PROXY_LABEL,
  type ProxyName,
  placementPatch,
  type Verified,
} from "@fairlead/migrate";
import { kubectl } from "../../node/kubectl.ts";
import { type Cluster, clusterObjects } from "./cluster.ts";

/** Milliseconds of a call that waits until objects are gone. */
const CHANGE_MS = 120_000;

/** The longest reason that is left on a node. */
const REASON = 1_000;

/**
 * A migration's way to the cluster, through kubectl.
 *
 * @param installation absent: nothing is installed, on the way back
 */
export function kubectlPort(
  cluster: Cluster,
  installation: Installation | undefined,
  verify: (node: string) => Promise<Verified>,
): MigrationPort {
  const change = async (args: readonly string[], input?: string) => {
    await kubectl(args, cluster.kubectl, { timeoutMs: CHANGE_MS, ...(input === undefined ? {} : { input }) });
  };
  const patchNode = (node: string, metadata: object) =>
    change(["patch", "node", node, "--type=merge", `--patch=${JSON.stringify({ metadata })}`]);
  const marks = { [PROVEN_ANNOTATION]: null, [PROBLEM_ANNOTATION]: null };
  const manifests = installation && fingerprint(installation);
  const observe = async () => migrationState(await clusterObjects(cluster), manifests);
  return {
    observe,
    verify,
    install: async (placement) => {
      if (installation === undefined) throw new Error("there is nothing to install");
      const items = fairleadObjects(installation, placement);
      await change(["apply", "--filename=-"], JSON.stringify({ apiVersion: "v1", kind: "List", items }));
    },
    uninstall: async () => {
      const own = `--selector=${MANAGED_BY_LABEL}=${MANAGER}`;
      // Its pods go with it, before what they live on does.
      await change([
        "delete",
        "daemonset",
        FAIRLEAD,
        `--namespace=${NAMESPACE}`,
        "--ignore-not-found",
        "--cascade=foreground",
      ]);
      await change(["delete", "serviceaccount,configmap", own, `--namespace=${NAMESPACE}`]);
      await change(["delete", "clusterrolebinding", own]);
    },
    place: async (proxy, placement) => {
      const { kubeProxy, fairlead } = await clusterObjects(cluster);
      const [daemonSet, { namespace, name }] =
        proxy === FAIRLEAD ? [fairlead, { namespace: NAMESPACE, name: FAIRLEAD }] : [kubeProxy, cluster.kubeProxy];
      const patch = JSON.stringify(placementPatch(proxy, daemonSet, placement));
      await change(["patch", "daemonset", name, `--namespace=${namespace}`, "--type=merge", `--patch=${patch}`]);
    },
    assign: (node: string, to: ProxyName) => patchNode(node, { labels: { [PROXY_LABEL]: to }, annotations: marks }),
    putBack: (node: string, to: ProxyName, reason: string) => {
      const annotations = { ...marks, [PROBLEM_ANNOTATION]: reason.slice(0, REASON) };
      return patchNode(node, { labels: { [PROXY_LABEL]: to }, annotations });
    },
    prove: (node, proxy) => patchNode(node, { annotations: { [PROVEN_ANNOTATION]: proxy } }),
    unmark: async () => {
      const { nodes } = await observe();
      const marked = nodes.filter(({ label, proven, problem }) => (label ?? proven ?? problem) !== undefined);
      for (const { name } of marked) await patchNode(name, { labels: { [PROXY_LABEL]: null }, annotations: marks });
    },
  };
}
