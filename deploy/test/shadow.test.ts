import { join } from "node:path";
import { beforeAll, expect, test } from "vitest";
import { listenAddress } from "../../apps/cli/src/commands/verify/watch/run.ts";
import { agentVersion } from "../src/agent-version.ts";
import { CLI_NAME } from "../src/image/agent-layer.ts";
import { deployDir } from "../src/paths.ts";
import { agentConfig, toolOptions } from "./support/container.ts";
import { ownManifests } from "./support/kustomization.ts";
import { type Manifest, only } from "./support/manifests.ts";

let manifests: Manifest[] = [];
let base: Manifest[] = [];
beforeAll(async () => {
  manifests = await ownManifests(join(deployDir, "overlays", "shadow"));
  base = await ownManifests(join(deployDir, "base"));
});
const podOf = (some: readonly Manifest[]) => only(some, "DaemonSet")["spec"].template.spec;

/** As kubeadm makes it. */
const kubeProxysConfigMap: Manifest = {
  kind: "ConfigMap",
  metadata: { name: "kube-proxy", namespace: "kube-system" },
  data: {
    "config.conf": [
      "apiVersion: kubeproxy.config.k8s.io/v1alpha1",
      "kind: KubeProxyConfiguration",
      "bindAddress: 0.0.0.0",
      "clientConnection:",
      "  kubeconfig: /var/lib/kube-proxy/kubeconfig.conf",
      "clusterCIDR: 10.244.0.0/16",
      'healthzBindAddress: ""',
      'metricsBindAddress: ""',
      'mode: ""',
    ].join("\n"),
    "kubeconfig.conf": "",
  },
};

test("it runs fairlead verify --watch with kube-proxy's own file, on a port that kube-proxy has not", () => {
  const [container] = podOf(manifests).containers;
  const { command, options } = toolOptions(container);
  expect(command).toEqual([CLI_NAME, "verify"]);
  expect(options).toMatchObject({ watch: true, config: "/var/lib/kube-proxy/config.conf", node: "node-a" });
  const agent = { ...container, command: undefined, args: [`--config=${options.config}`] };
  const result = agentConfig(agent, kubeProxysConfigMap, "kube-proxy");
  if (result.kind !== "run") throw new Error(JSON.stringify(result));
  expect(result.warnings).toEqual([]);
  expect(listenAddress(result.config)).toEqual({ address: "127.0.0.1", port: 10_449 });
});

test("nothing of it can be taken for the agent that serves, and it has no more rights than reading takes", async () => {
  const names = manifests.map(({ kind, metadata }) => `${kind} ${metadata.name}`);
  for (const { kind, metadata } of base) expect(names).not.toContain(`${kind} ${metadata.name}`);
  const pod = podOf(manifests);
  expect(pod.initContainers).toBeUndefined();
  expect(pod.volumes.map(({ name, configMap }: Manifest["spec"]) => [name, configMap?.name])).toEqual([
    ["kube-proxy", "kube-proxy"],
  ]);
  const [container] = pod.containers;
  expect(container.securityContext).toEqual({
    allowPrivilegeEscalation: false,
    readOnlyRootFilesystem: true,
    capabilities: { drop: ["ALL"], add: ["NET_ADMIN", "NET_RAW"] },
  });
  expect(container.image).toBe(`ghcr.io/fairlead-dev/fairlead:${await agentVersion()}`);
  expect(pod.priorityClassName).toBeUndefined();
});
