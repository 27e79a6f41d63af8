import { errorText } from "@fairlead/base";
import { parseAllDocuments, stringify } from "yaml";
import { CONFIG_FOLDER } from "../manifests/containers.ts";
import type { InstallationOptions } from "../manifests/objects.ts";

const OWN_KIND = "FairleadConfiguration";

/** What of an installation is in its file. */
type OwnSettings = Pick<InstallationOptions, "excludeClusterCIDRs" | "mode">;

/**
 * kube-proxy's file as Fairlead's DaemonSet mounts it: the kubeconfig next to it, another mode where one is asked for,
 * other networks' CIDRs in the second document. All else, comments included, stays.
 *
 * @throws Error when it is no YAML
 */
export function fairleadConfig(text: string, { excludeClusterCIDRs, mode }: OwnSettings): string {
  const documents = [...parseAllDocuments(text)];
  for (const { errors } of documents) if (errors[0] !== undefined) throw new Error(errorText(errors[0]));
  const isOwn = (document: (typeof documents)[number]) => document.get("kind") === OWN_KIND;
  for (const document of documents) {
    if (!isOwn(document)) {
      document.setIn(["clientConnection", "kubeconfig"], `${CONFIG_FOLDER}/kubeconfig.conf`);
      if (mode !== undefined) document.set("mode", mode);
    } else if (excludeClusterCIDRs.length > 0)
      document.setIn(["multiCNI", "excludeClusterCIDRs"], [...excludeClusterCIDRs]);
  }
  const texts = documents.map((document) => document.toString({ lineWidth: 0, directives: false }));
  if (!documents.some(isOwn) && excludeClusterCIDRs.length > 0) {
    const own = { apiVersion: "fairlead.dev/v1alpha1", kind: OWN_KIND, multiCNI: { excludeClusterCIDRs } };
    texts.push(stringify(own));
  }
  return texts.join("---\n");
}

/** The path of the kubeconfig that kube-proxy's file names; undefined: it names none. */
export function kubeconfigPathIn(text: string): string | undefined {
  const paths = [...parseAllDocuments(text)].map((document) => document.getIn(["clientConnection", "kubeconfig"]));
  return paths.find((path) => typeof path === "string" && path !== "") as string | undefined;
}

/** The API servers of a kubeconfig. */
export function serversOf(kubeconfig: string): readonly string[] {
  return clustersOf(parseAllDocuments(kubeconfig)[0]?.toJS()).map(({ server }) => server);
}

/** A kubeconfig with another API server. */
export function withServer(kubeconfig: string, server: string): string {
  const [document] = parseAllDocuments(kubeconfig);
  if (document === undefined) return kubeconfig;
  for (const [at] of clustersOf(document.toJS()).entries())
    document.setIn(["clusters", at, "cluster", "server"], server);
  return document.toString({ lineWidth: 0 });
}

function clustersOf(value: unknown): readonly { readonly server: string }[] {
  const { clusters } = (value ?? {}) as { clusters?: readonly { cluster?: { server?: string } }[] };
  return (Array.isArray(clusters) ? clusters : []).map(({ cluster }) => ({ server: String(cluster?.server ?? "") }));
}
