import type { RunOptions } from "@fairlead/kernel";
import { parseAllDocuments } from "yaml";
import { kubeOvnImages, manifests } from "../../../../kind/published.ts";
import { PORT } from "../../../control-plane/control-plane.ts";
import { serviceCIDRs } from "../../netns/addresses.ts";
import type { KindNetwork, KindNetworkGround } from "../networks/network.ts";
import type { NetworkInstaller, Source } from "../source.ts";
import {
  calicoVariables,
  imagesOf,
  kubeOvnScript,
  type PublishedObject,
  type PublishedSettings,
  settled,
} from "./manifests.ts";
import { pulled } from "./pulled.ts";

export const publishedInstallers: Source["installers"] = {
  calico: fromManifest(manifests.calico, "kube-system", "calico-node", calicoVariables),
  flannel: fromManifest(manifests.flannel, "kube-flannel", "kube-flannel-ds", () => ({})),
  ovn: kubeOvn,
};

const READY: RunOptions = { timeoutMs: 320_000 };
const PATIENCE = "--timeout=300s";

function fromManifest(
  url: string,
  namespace: string,
  daemonSet: string,
  variables: (settings: PublishedSettings) => Parameters<typeof settled>[2],
): NetworkInstaller {
  return async (ground): Promise<KindNetwork> => {
    const { cluster, progress } = ground;
    const settings = settingsOf(ground);
    const parsed = parseAllDocuments(await textAt(url)).map((one): PublishedObject | null => one.toJS());
    const objects = settled(
      parsed.filter((one) => one !== null),
      settings,
      variables(settings),
    );
    await cluster.loadImage(await pulled(imagesOf(objects), progress));
    const input = objects.map((one) => JSON.stringify(one)).join("\n---\n");
    await cluster.kubectl(["apply", "--server-side", "-f", "-"], { input });
    await cluster.kubectl(["-n", namespace, "rollout", "status", `daemonset/${daemonSet}`, PATIENCE], READY);
    return logsOf(ground, namespace, daemonSet);
  };
}

/** Its script asks the cluster what it needs to know, and waits until everything runs. */
async function kubeOvn(ground: KindNetworkGround): Promise<KindNetwork> {
  const { cluster, progress } = ground;
  const script = kubeOvnScript(await textAt(manifests.ovn), settingsOf(ground));
  await cluster.loadImage(await pulled(kubeOvnImages, progress));
  const variables = ["KUBECONFIG=/etc/kubernetes/admin.conf", ...familyVariables(ground)];
  await cluster.controlPlane.exec(["env", ...variables, "bash", "-s"], { ...READY, input: script });
  return logsOf(ground, "kube-system", "kube-ovn-cni");
}

function familyVariables({ families }: KindNetworkGround): readonly string[] {
  if (families.length === 2) return ["DUAL_STACK=true"];
  return families.includes("IPv6") ? ["IPV6=true"] : [];
}

function settingsOf({ cluster, flavour, families, configFolder }: KindNetworkGround): PublishedSettings {
  const host = Object.values(cluster.controlPlane.addresses)[0] ?? "";
  return { podCIDRs: flavour.podCIDRs, serviceCIDRs, families, configFolder, apiServer: { host, port: PORT } };
}

function logsOf({ cluster }: KindNetworkGround, namespace: string, daemonSet: string): KindNetwork {
  return {
    state: async () => {
      const { stdout } = await cluster.kubectl(["-n", namespace, "logs", `daemonset/${daemonSet}`, "--all-pods"]);
      return { [`${daemonSet}.log`]: stdout };
    },
  };
}

async function textAt(url: string): Promise<string> {
  const response = await fetch(url);
  if (!response.ok) throw new Error(`${url}: ${response.status} ${response.statusText}`);
  return response.text();
}
