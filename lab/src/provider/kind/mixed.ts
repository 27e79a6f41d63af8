/** Clusters of kind with more than one proxy. */

import { createRunner } from "@fairlead/kernel";
import type { ClusterShape, NodeProxy } from "../cluster.ts";
import { apply, fairleadManifests, type Manifest } from "./fairlead.ts";
import { type KindCluster, PATIENCE_MS, rolledOut } from "./kind-cluster.ts";

const KUBE_PROXY = "kube-proxy";

/** What a node's label says; undefined: it has Fairlead's own DaemonSet. */
export function placeOf(shape: Pick<ClusterShape, "mode">, { mode, kubeProxy }: NodeProxy): string | undefined {
  if (kubeProxy !== undefined) return KUBE_PROXY;
  return mode === shape.mode ? undefined : `fairlead-${mode}`;
}

interface DaemonSet extends Manifest {
  readonly metadata: { readonly name: string; readonly labels?: Readonly<Record<string, string>> };
  readonly spec: {
    readonly selector: { readonly matchLabels: Readonly<Record<string, string>> };
    readonly template: {
      readonly metadata: { readonly labels: Readonly<Record<string, string>> };
      readonly spec: object;
    };
  };
}

/** Of Fairlead's manifests in a mode the DaemonSet for nodes with that label, and the ConfigMap that it reads. */
export function placedManifests(manifests: readonly Manifest[], place: string): readonly Manifest[] {
  return manifests
    .filter(({ kind }) => kind === "ConfigMap" || kind === "DaemonSet")
    .map((one) => (one.kind === "DaemonSet" ? placed(one as DaemonSet, place) : one));
}

interface Ground {
  readonly cluster: KindCluster;
  readonly shape: ClusterShape;
  /** The program. */
  readonly kubectl: string;
  readonly apiServer: string;
}

/** Names the DaemonSet that a node has in place of Fairlead's own. */
const LABEL = "fairlead.dev/test-proxy";

/** Gives nodes other proxies; those that are not named have Fairlead's own DaemonSet. */
export async function giveProxies(
  { cluster, shape, kubectl, apiServer }: Ground,
  proxies: ReadonlyMap<string, NodeProxy>,
): Promise<void> {
  const places = Array.from(proxies, ([node, proxy]) => [node, placeOf(shape, proxy), proxy] as const);
  for (const [node, place] of places) {
    const label = place === undefined ? `${LABEL}-` : `${LABEL}=${place}`;
    await cluster.kubectl(["label", "node", node, "--overwrite", label]);
  }
  for (const [place, mode] of new Map(places.map(([, place, { mode }]) => [place, mode]))) {
    if (place === KUBE_PROXY) await addKubeProxy(cluster, mode);
    else if (place !== undefined) {
      const how = { overlay: mode, apiServer, start: {} };
      const manifests = await fairleadManifests(createRunner(), kubectl, { ...shape, mode }, how);
      await apply(cluster, placedManifests(manifests, place));
    }
  }
  const wanted = new Set(places.flatMap(([, place]) => place ?? []));
  if (wanted.has(KUBE_PROXY)) await placeOn(cluster, KUBE_PROXY, { nodeSelector: { [LABEL]: KUBE_PROXY } });
  const unlabeled = { matchExpressions: [{ key: LABEL, operator: "DoesNotExist" }] };
  const nodeAffinity = { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [unlabeled] } };
  await placeOn(cluster, "fairlead", { affinity: wanted.size === 0 ? null : { nodeAffinity } });
  for (const name of ["fairlead", ...wanted]) await rolledOut(cluster, name);
  await removeOthers(cluster, wanted);
}

const CONFIG = "/kind/kube-proxy.conf";

/** Puts kube-proxy on the nodes as kubeadm does, and waits until it runs on each. */
export async function addKubeProxy({ controlPlane, kubectl }: KindCluster, mode: string): Promise<void> {
  const { stdout: own } = await controlPlane.exec(["cat", "/kind/kubeadm.conf"]);
  await controlPlane.exec(["tee", CONFIG], { input: `${own.trimEnd()}\n---\n${settings(mode)}\n` });
  await controlPlane.exec(["kubeadm", "init", "phase", "addon", "kube-proxy", `--config=${CONFIG}`]);
  await rolledOut({ kubectl }, "kube-proxy");
}

function placed(daemonSet: DaemonSet, name: string): Manifest {
  const { metadata, spec } = daemonSet;
  const { template } = spec;
  const labels = { ...template.metadata.labels, [LABEL]: name };
  return {
    ...daemonSet,
    metadata: { ...metadata, name },
    spec: {
      ...spec,
      selector: { matchLabels: { ...spec.selector.matchLabels, [LABEL]: name } },
      template: {
        ...template,
        metadata: { ...template.metadata, labels },
        spec: { ...template.spec, nodeSelector: { [LABEL]: name } },
      },
    },
  };
}

const SYSTEM = ["-n", "kube-system"] as const;

async function placeOn({ kubectl }: KindCluster, name: string, spec: object): Promise<void> {
  const patch = JSON.stringify({ spec: { template: { spec } } });
  await kubectl([...SYSTEM, "patch", "daemonset", name, "--type=merge", `--patch=${patch}`]);
}

/** What an earlier call has made and no node has anymore. */
async function removeOthers({ kubectl }: KindCluster, wanted: ReadonlySet<string>): Promise<void> {
  const { stdout } = await kubectl([...SYSTEM, "get", "daemonsets", "-o", "name"]);
  const names = stdout.split("\n").map((line) => line.replace("daemonset.apps/", ""));
  const ours = names.filter((name) => name === KUBE_PROXY || name.startsWith("fairlead-"));
  for (const name of ours) {
    if (!wanted.has(name))
      await kubectl([...SYSTEM, "delete", "daemonset", name, "--cascade=foreground"], { timeoutMs: PATIENCE_MS });
  }
}

/**
 * What kind gives kube-proxy: a container may not set the machine's connection tracking. In another mode
 * than Fairlead's it would remove Fairlead's rules with its start, before it has its own.
 */
function settings(mode: string): string {
  return JSON.stringify({
    apiVersion: "kubeproxy.config.k8s.io/v1alpha1",
    kind: "KubeProxyConfiguration",
    mode,
    conntrack: { maxPerCore: 0 },
  });
}
