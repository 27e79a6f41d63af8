import { fieldsOf, stringOf } from "@fairlead/base";
import { CONFIG_MAPS, DAEMON_SETS, inNamespace, NODES, PODS, type Resource } from "../../cluster/resources.ts";
import { FAIRLEAD, MANAGED_BY_LABEL, MANAGER, NAMESPACE } from "../../migrate/cluster/names.ts";
import { placementPatch } from "../../migrate/cluster/placement.ts";
import { migrationState } from "../../migrate/cluster/state.ts";
import { CHECK_LABEL, fairleadObjects, fingerprint, type Installation } from "../../migrate/manifests/objects.ts";
import {
  PROBLEM_ANNOTATION,
  PROVEN_ANNOTATION,
  PROXY_LABEL,
  type ProxyName,
  provenText,
} from "../../migrate/plan/state.ts";
import type { MigrationPort, Verified } from "../../migrate/run/port.ts";
import { type ChangedCluster, clusterObjects } from "./cluster.ts";

/** What Fairlead's pods live on. */
const OWN_RESOURCES: readonly Resource[] = [
  { apiVersion: "v1", plural: "serviceaccounts", namespace: NAMESPACE },
  inNamespace(CONFIG_MAPS, NAMESPACE),
  { apiVersion: "rbac.authorization.k8s.io/v1", plural: "clusterrolebindings" },
];

/** The longest reason that is left on a node. */
const REASON = 1_000;

/**
 * A migration's way to the cluster.
 *
 * @param installation absent: nothing is installed, on the way back
 */
export function clusterPort(
  changed: ChangedCluster,
  installation: Installation | undefined,
  verify: (node: string, proxy: ProxyName) => Promise<Verified>,
): MigrationPort {
  const { cluster } = changed;
  const patchNode = (node: string, metadata: object) => cluster.patch(NODES, node, { metadata });
  const marks = { [PROVEN_ANNOTATION]: null, [PROBLEM_ANNOTATION]: null };
  const mode = installation?.options.mode;
  const wanted = installation && { manifests: fingerprint(installation), mode };
  const removeAll = async (resource: Resource, labels: string) => {
    for (const object of await cluster.list(resource, { labels })) await cluster.remove(resource, nameOf(object));
  };
  const observe = async () => migrationState(await clusterObjects(changed), wanted);
  return {
    observe,
    verify,
    install: async (placement) => {
      if (installation === undefined) throw new Error("there is nothing to install");
      for (const object of fairleadObjects(installation, placement)) await cluster.apply(object);
    },
    uninstall: async () => {
      // Its pods go with it, before what they live on does.
      await cluster.remove(inNamespace(DAEMON_SETS, NAMESPACE), FAIRLEAD, "first");
      for (const resource of OWN_RESOURCES) await removeAll(resource, `${MANAGED_BY_LABEL}=${MANAGER}`);
      // A run that was killed while it looked at a node leaves its pod.
      await removeAll(inNamespace(PODS, NAMESPACE), CHECK_LABEL);
    },
    place: async (proxy, placement) => {
      const { kubeProxy, fairlead } = await clusterObjects(changed);
      const [daemonSet, { namespace, name }] =
        proxy === FAIRLEAD ? [fairlead, { namespace: NAMESPACE, name: FAIRLEAD }] : [kubeProxy, changed.kubeProxy];
      const patch = placementPatch(proxy, daemonSet, placement);
      await cluster.patch(inNamespace(DAEMON_SETS, namespace), name, patch);
    },
    assign: (node: string, to: ProxyName) => patchNode(node, { labels: { [PROXY_LABEL]: to }, annotations: marks }),
    putBack: (node: string, to: ProxyName, reason: string) => {
      const annotations = { ...marks, [PROBLEM_ANNOTATION]: reason.slice(0, REASON) };
      return patchNode(node, { labels: { [PROXY_LABEL]: to }, annotations });
    },
    prove: (node, proxy) => patchNode(node, { annotations: { [PROVEN_ANNOTATION]: provenText(proxy, mode) } }),
    unmark: async () => {
      const { nodes } = await observe();
      const marked = nodes.filter(({ label, proven, problem }) => (label ?? proven ?? problem) !== undefined);
      for (const { name } of marked) await patchNode(name, { labels: { [PROXY_LABEL]: null }, annotations: marks });
    },
  };
}

function nameOf(object: unknown): string {
  return stringOf(fieldsOf(fieldsOf(object)["metadata"])["name"]) ?? "";
}
