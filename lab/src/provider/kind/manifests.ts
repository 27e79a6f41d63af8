import { createHash } from "node:crypto";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Runner } from "@fairlead/kernel";
import { parse, parseAllDocuments, stringify } from "yaml";
import type { ClusterShape } from "../cluster.ts";
import { networkCIDRs, SYNC_PERIOD_MS } from "../netns/proxy-flags.ts";
import type { AgentStart } from "../node.ts";
import type { Manifest } from "./manifest.ts";
import { startedWith } from "./started-with.ts";

const overlays = fileURLToPath(new URL("../../../../deploy/overlays/", import.meta.url));

/** What deploy/ has manifests for: modes, and more. */
export async function overlayNames(): Promise<readonly string[]> {
  return (await readdir(overlays)).sort();
}

/** The manifests of deploy/, with the values that each cluster has of its own, and what agents are started with. */
export async function fairleadManifests(
  runner: Runner,
  kubectl: string,
  shape: ClusterShape,
  { overlay, apiServer, start }: { readonly overlay: string; readonly apiServer: string; readonly start: AgentStart },
): Promise<readonly Manifest[]> {
  const { stdout } = await runner.run([kubectl, "kustomize", join(overlays, overlay)]);
  const manifests = parseAllDocuments(stdout).map((document): Manifest => document.toJS());
  const configMap = manifests.find(({ kind }) => kind === "ConfigMap");
  if (configMap === undefined) return manifests;
  const filled = withValues(configMap, shape, apiServer, start);
  const { name } = filled["metadata"] as { readonly name: string };
  return manifests.map((one) => {
    if (one === configMap) return filled;
    return one.kind === "DaemonSet" ? startedWith(one, name, start) : one;
  });
}

/**
 * A ConfigMap with the values that each cluster has of its own. Its name says what is in it, so that a change is a new
 * pod on one node after the other.
 */
export function withValues(
  manifest: Manifest,
  shape: ClusterShape,
  apiServer: string,
  { learns = false }: Pick<AgentStart, "learns"> = {},
): Manifest {
  const data = manifest["data"] as Readonly<Record<"config.conf" | "kubeconfig.conf", string>>;
  const [proxy = {}, fairlead = {}] = parseAllDocuments(data["config.conf"]).map((document) => document.toJS());
  const kubeconfig = parse(data["kubeconfig.conf"]);
  kubeconfig.clusters[0].cluster.server = apiServer;
  const config = [
    {
      ...proxy,
      clusterCIDR: learns ? "" : networkCIDRs(shape, { excluded: false }).join(","),
      // Specs wait for changes; a cluster of two nodes can take them at once.
      [shape.mode]: { ...proxy[shape.mode], minSyncPeriod: "50ms", syncPeriod: `${SYNC_PERIOD_MS}ms` },
      logging: { verbosity: 2 },
    },
    { ...fairlead, multiCNI: { excludeClusterCIDRs: learns ? [] : networkCIDRs(shape, { excluded: true }) } },
  ];
  const text = config.map((one) => stringify(one)).join("---\n");
  const files = { "config.conf": text, "kubeconfig.conf": stringify(kubeconfig) };
  const hash = createHash("sha256").update(JSON.stringify(files)).digest("hex").slice(0, 10);
  const { metadata } = manifest as { readonly metadata?: object };
  return { ...manifest, metadata: { ...metadata, name: `fairlead-${hash}` }, data: files };
}
