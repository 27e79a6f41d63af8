import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { parseAllDocuments } from "yaml";
import { bridgedIsSeen } from "../../../../cni/bridge-plugin.ts";
import { toolPackages } from "../../../../kind/versions.ts";
import { providePrograms } from "../../../control-plane/program-set.ts";
import { applySettings } from "../../../lab/apply.ts";
import { flannel as flannelSet } from "../programs.ts";
import type { KindNetwork, KindNetworkGround } from "./network.ts";
import { networkImage } from "./network-image.ts";

const manifest = fileURLToPath(new URL("../../../../kind/flannel.yaml", import.meta.url));

/** flannel itself, as a DaemonSet; `backend`: how packets get to another node. */
export function flannel(backend: "vxlan" | "host-gw") {
  return async (ground: KindNetworkGround): Promise<KindNetwork> => {
    const { cluster, flavour, families, configFolder, kubernetes, progress } = ground;
    const programs = await providePrograms(flannelSet, kubernetes, progress);
    await Promise.all(cluster.nodes.map((node) => applySettings(node.runner, bridgedIsSeen)));
    const files = { "usr/local/bin/flanneld": programs.flanneld, "usr/local/bin/flannel": programs.flannel };
    const image = { name: "flannel", packages: toolPackages, root: "tools", files };
    await cluster.loadImage(await networkImage(image, progress));
    const network = {
      Network: flavour.podCIDRs.IPv4,
      ...(families.includes("IPv6") && { EnableIPv6: true, IPv6Network: flavour.podCIDRs.IPv6 }),
      Backend: { Type: backend },
    };
    const text = await readFile(manifest, "utf8");
    const objects = parseAllDocuments(text.replaceAll("/etc/cni/net.d", configFolder)).map((one) => one.toJS());
    const address = Object.values(cluster.controlPlane.addresses)[0] ?? "";
    for (const object of objects) {
      if (object.kind === "ConfigMap") object.data["net-conf.json"] = JSON.stringify(network);
      if (object.kind === "DaemonSet") {
        const [container] = object.spec.template.spec.containers;
        container.env.push({ name: "KUBERNETES_SERVICE_HOST", value: address });
        container.env.push({ name: "KUBERNETES_SERVICE_PORT", value: "6443" });
      }
    }
    await cluster.kubectl(["apply", "-f", "-"], { input: objects.map((one) => JSON.stringify(one)).join("\n---\n") });
    await cluster.kubectl(["-n", "kube-system", "rollout", "status", "daemonset/flannel", "--timeout=180s"], {
      timeoutMs: 200_000,
    });
    return {
      state: async () => {
        const { stdout } = await cluster.kubectl(["-n", "kube-system", "logs", "-l", "app=flannel", "--prefix"]);
        return { "flannel.log": stdout };
      },
    };
  };
}
