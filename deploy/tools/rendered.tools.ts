import { join } from "node:path";
import { CommandError, createRunner } from "@fairlead/kernel";
import { describe, expect, test } from "vitest";
import { deployDir } from "../src/paths.ts";
import { agentConfig } from "../test/support/container.ts";
import { only, parseManifests } from "../test/support/manifests.ts";

const runner = createRunner();
const apiServer = "apiServer=https://192.0.2.1:6443";

async function helm(...settings: readonly string[]): Promise<string> {
  const set = settings.flatMap((setting) => ["--set", setting]);
  const release = ["template", "fairlead", join(deployDir, "helm/fairlead"), "--namespace=kube-system"];
  return (await runner.run(["helm", ...release, "--kube-version=1.34.0", ...set])).stdout;
}

/** What the agent of a rendered set of manifests makes of its container's arguments. */
function agentOf(text: string) {
  const manifests = parseManifests(text);
  const [container] = only(manifests, "DaemonSet")["spec"].template.spec.containers;
  return { container, result: agentConfig(container, only(manifests, "ConfigMap"), "config") };
}

describe("the chart", () => {
  test("is hardened unless told otherwise", async () => {
    const { container, result } = agentOf(await helm(apiServer));
    expect(result).toMatchObject({ kind: "run", warnings: [], config: { mode: "iptables" } });
    expect(container.securityContext.capabilities).toEqual({ drop: ["ALL"], add: ["NET_ADMIN", "NET_RAW"] });
    expect(agentOf(await helm(apiServer, "hardened=false")).container.securityContext).toEqual({ privileged: true });
  });

  test("carries every value into the configuration", async () => {
    const text = await helm(
      apiServer,
      "mode=ipvs",
      "clusterCIDRs={10.144.0.0/16,fd00:144::/48}",
      "multiCNI.excludeClusterCIDRs={10.244.0.0/16}",
      "multiCNI.mixedServices=skip",
      "config.ipvs.strictARP=true",
      "verbosity=4",
    );
    expect(agentOf(text).result).toMatchObject({
      kind: "run",
      warnings: [],
      config: {
        mode: "ipvs",
        clusterCIDRs: ["10.144.0.0/16", "fd00:144::/48"],
        ipvs: { strictARP: true },
        multiCNI: { excludeClusterCIDRs: ["10.244.0.0/16"], mixedServices: "skip" },
        logging: { verbosity: 4 },
      },
    });
  });

  test.each([
    ["no API server", [], /apiServer/],
    ["a field of its own in config", [apiServer, "config.mode=ipvs"], /config/],
    ["an unknown value", [apiServer, "clusterCidr=10.0.0.0/8"], /clusterCidr/],
    ["a PodMonitor that reaches nothing", [apiServer, "podMonitor.enabled=true"], /0\.0\.0\.0:10249/],
  ])("refuses %s", async (_what, settings, message) => {
    const error = await helm(...settings).catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(CommandError);
    expect(String(error)).toMatch(message);
  });
});

describe.each(["base", "overlays/iptables", "overlays/ipvs", "overlays/multi-cni", "overlays/hardened"])(
  "%s",
  (folder) => {
    test("kustomize builds it, and the agent takes what comes out", async () => {
      const { stdout } = await runner.run(["kustomize", "build", join(deployDir, folder)]);
      expect(agentOf(stdout).result).toMatchObject({ kind: "run", warnings: [] });
    });
  },
);
