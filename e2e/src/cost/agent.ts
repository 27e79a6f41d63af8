import { dirname } from "node:path";
import { agentFile, requireAgent } from "@fairlead/lab/agent";
import { NETWORKS, type RawObject } from "@fairlead/testkit";
import { stringify } from "yaml";
import type { GuestNeeds } from "./measure.ts";
import { DEVICES, NODE } from "./network.ts";
import type { Subject } from "./subject.ts";

const MANIFESTS = "objects.yaml";
const CONFIG = "agent.yaml";

/** Questions, a second of the guest's time each, which cost nothing while it is idle. */
const PATIENCE = 120;

/** @throws Error that says how to build it */
export async function agentGuest(): Promise<GuestNeeds> {
  await requireAgent();
  return { programs: [process.execPath], libraries: [dirname(agentFile())] };
}

/** The built agent programs the guest's kernel, after its own test of the kernel's flowtables, and runs on. */
export function builtAgent(name: string, objects: readonly RawObject[]): Subject {
  const config = [
    {
      apiVersion: "kubeproxy.config.k8s.io/v1alpha1",
      kind: "KubeProxyConfiguration",
      mode: "nftables",
      clusterCIDR: NETWORKS.calico.IPv4,
    },
    {
      apiVersion: "fairlead.dev/v1alpha1",
      kind: "FairleadConfiguration",
      nftables: { fastPath: { devices: DEVICES["one node"] } },
    },
  ];
  const flags = [
    `--config=/guest/${CONFIG}`,
    `--manifests=/guest/${MANIFESTS}`,
    "--state-dir=/tmp/state",
    "--hostname-override=node-a",
    "-v=2",
  ];
  const isReady = `ip netns exec ${NODE} nft list flowtables | grep -q ${DEVICES["one node"][0]}`;
  return {
    name,
    files: {
      [MANIFESTS]: objects.map((object) => stringify(object)).join("---\n"),
      [CONFIG]: config.map((document) => stringify(document)).join("---\n"),
    },
    load: [
      `ip netns exec ${NODE} node ${agentFile()} ${flags.join(" ")} > /tmp/log 2>&1 &`,
      `at=0; until ${isReady}; do at=$((at + 1)); [ $at -lt ${PATIENCE} ] || { cat /tmp/log; exit 1; }; sleep 1; done`,
    ],
  };
}
