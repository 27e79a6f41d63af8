import { join } from "node:path";
import { expect, test } from "vitest";
import { fairleadObjects } from "../../apps/cli/src/migrate/manifests.ts";
import { agentVersion } from "../src/agent-version.ts";
import { deployDir } from "../src/paths.ts";
import { configMapOf, ownManifests } from "./support/kustomization.ts";
import { only } from "./support/manifests.ts";

const baseDir = join(deployDir, "base");
const IMAGE = `ghcr.io/fairlead-dev/fairlead:${await agentVersion()}`;

/** Without what a migration marks its own by. */
function unmarked(object: unknown): unknown {
  const text = JSON.stringify(object, (key, value) =>
    key === "annotations" || key === "app.kubernetes.io/managed-by" ? undefined : value,
  );
  return JSON.parse(text);
}

test("what `fairlead migrate` installs is deploy/base, and the label's affinity", async () => {
  const base = await ownManifests(baseDir);
  const { data, immutable } = await configMapOf(baseDir);
  const options = { image: IMAGE, excludeClusterCIDRs: [], apiServer: undefined };
  const files = data as { "config.conf": string; "kubeconfig.conf": string };
  const installation = { options, flags: [], files };
  const own = fairleadObjects(installation, "everywhere").map(unmarked) as typeof base;
  for (const kind of ["ServiceAccount", "ClusterRoleBinding"]) expect(only(own, kind)).toEqual(only(base, kind));
  const configMap = only(own, "ConfigMap");
  expect(configMap).toMatchObject({ data, immutable, metadata: { namespace: "kube-system" } });
  const daemonSet = structuredClone(only(base, "DaemonSet"));
  const volume = daemonSet["spec"].template.spec.volumes.find(({ name }: { name: string }) => name === "config");
  volume.configMap.name = configMap.metadata.name;
  expect(only(own, "DaemonSet")).toEqual(daemonSet);
});
