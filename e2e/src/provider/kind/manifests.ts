import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Runner } from "@fairlead/kernel";
import { parse, parseAllDocuments, stringify } from "yaml";
import type { ClusterShape } from "../cluster.ts";
import { networkCIDRs, SYNC_PERIOD_MS } from "../netns/proxy-flags.ts";

const overlays = fileURLToPath(new URL("../../../../deploy/overlays/", import.meta.url));

/** A manifest as JSON. */
export type Manifest = Readonly<Record<string, unknown>> & { readonly kind: string };

/** What deploy/ has manifests for: modes, and more. */
export async function overlayNames(): Promise<readonly string[]> {
  return (await readdir(overlays)).sort();
}

/** The manifests of deploy/, with the values that each cluster has of its own. */
export async function fairleadManifests(
  runner: Runner,
  kubectl: string,
  shape: ClusterShape,
  { overlay, apiServer }: { readonly overlay: string; readonly apiServer: string },
): Promise<readonly Manifest[]> {
  const { stdout } = await runner.run([kubectl, "kustomize", join(overlays, overlay)]);
  return parseAllDocuments(stdout).map((document) => withValues(document.toJS(), shape, apiServer));
}

/** The values that each cluster has of its own, in the manifest that has them. */
export function withValues(manifest: Manifest, shape: ClusterShape, apiServer: string): Manifest {
  if (manifest.kind !== "ConfigMap") return manifest;
  const data = manifest["data"] as Readonly<Record<"config.conf" | "kubeconfig.conf", string>>;
  const [proxy = {}, fairlead = {}] = parseAllDocuments(data["config.conf"]).map((document) => document.toJS());
  const kubeconfig = parse(data["kubeconfig.conf"]);
  kubeconfig.clusters[0].cluster.server = apiServer;
  const config = [
    {
      ...proxy,
      clusterCIDR: networkCIDRs(shape, { excluded: false }).join(","),
      // Specs wait for changes; a cluster of two nodes can take them at once.
      [shape.mode]: { ...proxy[shape.mode], minSyncPeriod: "50ms", syncPeriod: `${SYNC_PERIOD_MS}ms` },
      logging: { verbosity: 2 },
    },
    { ...fairlead, multiCNI: { excludeClusterCIDRs: networkCIDRs(shape, { excluded: true }) } },
  ];
  const text = config.map((one) => stringify(one)).join("---\n");
  // Its name is still that of what the file says: a cluster that is used again gets other values under it.
  return { ...manifest, immutable: false, data: { "config.conf": text, "kubeconfig.conf": stringify(kubeconfig) } };
}
