import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { beforeAll, describe, expect, test } from "vitest";
import { AGENT_NAMES } from "../src/image/agent-layer.ts";
import { agentConfig } from "./support/container.ts";
import { type Manifest, only, parseManifests } from "./support/manifests.ts";

/** kube-proxy's DaemonSet as operators of two pod networks have it, with its image changed and nothing else. */
describe("the founding case's manifest", () => {
  let manifests: Manifest[] = [];
  const container = () => only(manifests, "DaemonSet")["spec"].template.spec.containers[0];

  beforeAll(async () => {
    manifests = parseManifests(await readFile(join(import.meta.dirname, "fixtures/founding-case.yaml"), "utf8"));
  });

  test("its command is a name of the agent in the image", () => {
    expect(AGENT_NAMES).toContain(container().command[0]);
  });

  test("the agent takes arguments and configuration as they are", () => {
    const result = agentConfig(container(), only(manifests, "ConfigMap"), "kube-proxy");
    expect(result).toMatchObject({
      kind: "run",
      config: {
        mode: "iptables",
        hostnameOverride: "node-a",
        clusterCIDRs: ["10.144.0.0/16"],
        client: { kubeconfig: "/var/lib/kube-proxy/kubeconfig.conf" },
        multiCNI: { excludeClusterCIDRs: ["10.244.0.0/16"] },
        logging: { verbosity: 5 },
      },
    });
  });
});
