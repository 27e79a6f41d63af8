/** Clusters of kind from published images only. */

import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { createRunner } from "@fairlead/kernel";
import { KUBE_OVN_IMAGES, MANIFESTS, nodeImage } from "../../../kind/versions.ts";
import { cacheFolder, kubernetesVersion, providePrograms } from "../../control-plane/programs.ts";
import { isThere } from "../../support/machine.ts";
import { SERVICE_CIDRS } from "../netns/ground.ts";
import type { Progress } from "../provider.ts";
import { PAUSE_IMAGE } from "./component-images.ts";
import type { ClusterImages } from "./kind-cluster.ts";
import { fingerprint, published as publishedSet } from "./machine.ts";
import type { NetworkInstaller, Source } from "./networks/network.ts";
import {
  applyManifest,
  imagesOf,
  type KindNetwork,
  type KindNetworkGround,
  logsOf,
  type NetworkSettings,
  objectsIn,
  READY,
  settingsOf,
  settled,
  type Variables,
} from "./networks/network.ts";

const PULL_MS = 15 * 60_000;

const publishedInstallers: Source["installers"] = {
  calico: fromManifest(MANIFESTS.calico, { namespace: "kube-system", daemonSet: "calico-node" }, calicoVariables),
  flannel: fromManifest(MANIFESTS.flannel, { namespace: "kube-flannel", daemonSet: "kube-flannel-ds" }),
  ovn: kubeOvn,
};

/** kind's own node image, and the pod networks' own manifests. */
export const published: Source = { images, installers: publishedInstallers };

/** Several pod networks side by side: a pod's runtime class says which configuration it is connected by. */
export function runtimeClassPatch(network: string): string {
  const table = `plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.${network}`;
  return `[${table}]\n  runtime_type = 'io.containerd.runc.v2'\n  cni_conf_dir = '/etc/cni/${network}.d'\n`;
}

/** What Calico's manifest finds out by itself, or has tunnels for. */
export function calicoVariables({ podCIDRs }: Pick<NetworkSettings, "podCIDRs">): Variables {
  const withoutTunnels = { CALICO_IPV4POOL_IPIP: "Never", CALICO_IPV4POOL_VXLAN: "Never" };
  return { "calico-node": { CALICO_IPV4POOL_CIDR: podCIDRs.IPv4 ?? "", ...withoutTunnels } };
}

/**
 * kube-ovn's script sets its variables at its beginning, a line each, and again for other families.
 *
 * @throws Error when one of them is not there anymore
 */
export function kubeOvnScript(
  script: string,
  { podCIDRs, families, configFolder }: Omit<NetworkSettings, "apiServer">,
  serviceCIDRs: NetworkSettings["podCIDRs"],
): string {
  const all = (cidrs: NetworkSettings["podCIDRs"]) => families.map((family) => cidrs[family]).join(",");
  const gateways = families.map((family) => (podCIDRs[family] ?? "").replace(/0\/16$/, "1").replace(/\/48$/, "1"));
  const values = {
    POD_CIDR: all(podCIDRs),
    POD_GATEWAY: gateways.join(","),
    SVC_CIDR: all(serviceCIDRs),
    CNI_CONF_DIR: configFolder,
  };
  return Object.entries(values).reduce((text, [name, value]) => {
    const line = new RegExp(`^( *)${name}=.*$`, "gm");
    if (text.search(line) === -1) throw new Error(`kube-ovn's script no longer has ${name}`);
    return text.replace(line, `$1${name}="${value}"`);
  }, script);
}

async function images(kubernetes: string, progress: Progress): Promise<ClusterImages> {
  const name = nodeImage(kubernetesVersion(kubernetes));
  const programs = await providePrograms(publishedSet, kubernetes, progress);
  return {
    programs,
    node: { name, taken: ["load", "--input", await pulled([name], progress)] },
    mounts: [{ hostPath: programs.bridge, containerPath: "/opt/cni/bin/bridge", readOnly: true }],
    containerdPatches: Object.keys(publishedInstallers).map(runtimeClassPatch),
    archives: [await pulled([PAUSE_IMAGE], progress)],
  };
}

function fromManifest(
  url: string,
  pods: Parameters<typeof logsOf>[1],
  variables: (settings: NetworkSettings) => Variables = () => ({}),
): NetworkInstaller {
  return async (ground): Promise<KindNetwork> => {
    const settings = settingsOf(ground);
    const objects = settled(objectsIn(await textAt(url)), settings, variables(settings));
    await ground.cluster.loadImage(await pulled(imagesOf(objects), ground.progress));
    await applyManifest(ground, objects, pods);
    return logsOf(ground, pods);
  };
}

/** Its script asks the cluster what it needs to know, and waits until everything runs. */
async function kubeOvn(ground: KindNetworkGround): Promise<KindNetwork> {
  const { cluster, progress } = ground;
  const script = kubeOvnScript(await textAt(MANIFESTS.ovn), settingsOf(ground), SERVICE_CIDRS);
  await cluster.loadImage(await pulled(KUBE_OVN_IMAGES, progress));
  const variables = ["KUBECONFIG=/etc/kubernetes/admin.conf", ...familyVariables(ground)];
  await cluster.controlPlane.exec(["env", ...variables, "bash", "-s"], { ...READY, input: script });
  return logsOf(ground, { namespace: "kube-system", daemonSet: "kube-ovn-cni" });
}

function familyVariables({ families }: KindNetworkGround): readonly string[] {
  if (families.length === 2) return ["DUAL_STACK=true"];
  return families.includes("IPv6") ? ["IPV6=true"] : [];
}

async function textAt(url: string): Promise<string> {
  const response = await fetch(url);
  if (!response.ok) throw new Error(`${url}: ${response.status} ${response.statusText}`);
  return response.text();
}

/**
 * Pulls images with this machine's own Docker, since that of a run reaches no registry.
 *
 * @returns an archive, kept by their names
 */
async function pulled(names: readonly string[], progress: Progress): Promise<string> {
  const folder = cacheFolder("kind-published");
  const file = join(folder, `${fingerprint(names)}.tar`);
  if (await isThere(file)) return file;
  await mkdir(folder, { recursive: true });
  const runner = createRunner({ timeoutMs: PULL_MS });
  for (const name of names) {
    progress(`pulling ${name} (once)`);
    await runner.run(["docker", "pull", name]);
  }
  await runner.run(["docker", "save", "--output", file, ...names]);
  return file;
}
