import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { kubeconfig, USERS } from "@fairlead/lab/control-plane/control-plane";
import { networkResource } from "@fairlead/lab/control-plane/network-resources";
import { SYNC_PERIOD_MS } from "@fairlead/lab/provider/netns/agent";
import { folderPrefix } from "@fairlead/lab/support/run-inventory";
import { excludedNetwork } from "../../multi-cni/networks.ts";
import type { Scene } from "../../scene.ts";
import { allow, install, ipPool, learnFrom, make, makeVpc, subnet } from "../learning.ts";
import { CIDR } from "../open-others.ts";

/** The default VPC where it once got another name: kube-ovn has both for the default one then. */
export const RENAMED_VPC = "main";

const OURS = { clusterCIDRsFrom: ["calico-ippools"], cidrChanges: { removalDelay: "1s" } };

/** `multiCNI` as the recipe has it, with all sources that are attacked; our own pools are believed anywhere. */
export function guarded({ cluster }: Scene): unknown {
  const theirs = Object.values(excludedNetwork(cluster).podCIDRs);
  return {
    ...OURS,
    excludeCIDRsFrom: [
      { source: "kube-ovn-subnets", within: [...theirs, CIDR] },
      { source: "nodes", within: ["10.251.0.0/16"] },
      "ovn-kubernetes-udns",
    ],
    excludedFrontends: "excluded-clients",
    serviceRules: [{ annotation: "ovn.kubernetes.io/vpc", notIn: [{ defaultVPC: true }], ownership: "foreign" }],
  };
}

/** The same without a prefix filter. */
export function unguarded(): unknown {
  return { ...OURS, excludeCIDRsFrom: ["kube-ovn-subnets"] };
}

/** The networks that are here describe themselves, and every agent learns them by a configuration file. */
export async function learnByFile(scene: Scene, multiCNI: unknown): Promise<void> {
  await describeNetworks(scene);
  await learnFrom(scene, `--config=${await configFile(scene, multiCNI)}`);
}

/** The CRDs, the roles, and the objects of the networks that are here. */
export async function describeNetworks(scene: Scene): Promise<void> {
  const { cluster, network } = scene;
  await allow(scene);
  for (const [group, kind] of [
    ["kubeovn.io", "Subnet"],
    ["kubeovn.io", "Vpc"],
    ["crd.projectcalico.org", "IPPool"],
    ["k8s.ovn.org", "UserDefinedNetwork"],
  ] as const) {
    await install(scene, networkResource(group, kind));
  }
  for (const name of ["ovn-cluster", RENAMED_VPC]) await makeVpc(scene, name, { default: true });
  await make(scene, subnet("ovn-default", Object.values(excludedNetwork(cluster).podCIDRs).join(",")));
  for (const [family, cidr] of Object.entries(network.podCIDRs)) {
    await make(scene, ipPool(`default-${family.toLowerCase()}`, cidr));
  }
}

/** A configuration file for agents of this cluster and their tools, which goes with the spec. */
export async function configFile({ cluster, later }: Scene, multiCNI: unknown): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), `${folderPrefix}-`));
  later(() => rm(folder, { recursive: true, force: true }));
  const access = join(folder, "kubeconfig");
  await writeFile(access, kubeconfig({ server: cluster.apiServer.url, token: USERS.proxy.token }), { mode: 0o600 });
  const periods = { minSyncPeriod: "50ms", syncPeriod: `${SYNC_PERIOD_MS}ms` };
  const kubeProxy = {
    apiVersion: "kubeproxy.config.k8s.io/v1alpha1",
    kind: "KubeProxyConfiguration",
    clientConnection: { kubeconfig: access },
    mode: cluster.mode,
    iptables: periods,
    nftables: periods,
  };
  const fairlead = { apiVersion: "fairlead.dev/v1alpha1", kind: "FairleadConfiguration", multiCNI };
  const file = join(folder, "config.conf");
  await writeFile(file, [kubeProxy, fairlead].map((document) => JSON.stringify(document)).join("\n---\n"));
  return file;
}
