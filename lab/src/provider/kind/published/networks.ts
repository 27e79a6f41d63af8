import { KUBE_OVN_IMAGES, MANIFESTS } from "../../../../kind/published.ts";
import { SERVICE_CIDRS } from "../../netns/addresses.ts";
import { applyManifest, logsOf, objectsIn, READY, settingsOf } from "../networks/apply-manifest.ts";
import { imagesOf, type NetworkSettings, settled, type Variables } from "../networks/manifest.ts";
import type { KindNetwork, KindNetworkGround } from "../networks/network.ts";
import type { NetworkInstaller, Source } from "../source.ts";
import { pulled } from "./pulled.ts";
import { calicoVariables, kubeOvnScript } from "./settings.ts";

export const publishedInstallers: Source["installers"] = {
  calico: fromManifest(MANIFESTS.calico, { namespace: "kube-system", daemonSet: "calico-node" }, calicoVariables),
  flannel: fromManifest(MANIFESTS.flannel, { namespace: "kube-flannel", daemonSet: "kube-flannel-ds" }),
  ovn: kubeOvn,
};

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
