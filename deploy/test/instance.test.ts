import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { beforeAll, expect, test } from "vitest";
import { parse } from "yaml";
import { deployDir } from "../src/paths.ts";
import { agentConfig } from "./support/container.ts";
import { configMapOf, ownManifests } from "./support/kustomization.ts";
import { type Manifest, only } from "./support/manifests.ts";

const dir = join(deployDir, "overlays", "instance");
let base: Manifest[] = [];
let kustomization: Manifest["spec"];
beforeAll(async () => {
  base = await ownManifests(join(deployDir, "base"));
  kustomization = parse(await readFile(join(dir, "kustomization.yaml"), "utf8"));
});
const containerOf = (manifests: readonly Manifest[]) =>
  only(manifests, "DaemonSet")["spec"].template.spec.containers[0];

test("the base's agent takes its configuration, and serves what is labeled for it", async () => {
  expect(agentConfig(containerOf(base), await configMapOf(dir), "config")).toMatchObject({
    kind: "run",
    warnings: [],
    config: { serviceProxyName: "edge", mode: "nftables", stateDir: "/var/lib/fairlead/instances/edge" },
  });
});

test("its port is the one at which the agent answers, in place of the first one's", async () => {
  const result = agentConfig(containerOf(base), await configMapOf(dir), "config");
  const { ports } = containerOf(await ownManifests(dir));
  const [firsts, own] = ports;
  expect(firsts).toEqual({
    containerPort: containerOf(base).ports[0].containerPort,
    protocol: "TCP",
    $patch: "delete",
  });
  expect(own).toEqual({ ...containerOf(base).ports[0], containerPort: 10_356, hostPort: 10_356 });
  expect(result).toMatchObject({ config: { healthzBindAddress: { port: own.containerPort } } });
});

test("its objects and its pods are told from the first one's, by the tools as well", () => {
  const { nameSuffix, labels, resources } = kustomization;
  expect(resources).toEqual(["../../base"]);
  expect(nameSuffix).toBe("-edge");
  expect(labels).toEqual([
    {
      pairs: { "app.kubernetes.io/name": "fairlead-edge", "fairlead.dev/service-proxy-name": "edge" },
      includeSelectors: true,
    },
  ]);
  // The first one's selector must not fit.
  expect(only(base, "DaemonSet")["spec"].selector.matchLabels).toEqual({ "app.kubernetes.io/name": "fairlead" });
});
