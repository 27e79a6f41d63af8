import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { beforeAll, describe, expect, test } from "vitest";
import { parse } from "yaml";
import { agentVersion, deployDir } from "../src/paths.ts";
import { agentConfig, configMapOf, type Manifest, only, ownManifests, readKustomization } from "./support/manifests.ts";

const baseDir = join(deployDir, "base");
let base: Manifest[] = [];
beforeAll(async () => {
  base = [...(await ownManifests(baseDir)), await configMapOf(baseDir)];
});
const podOf = (manifests: readonly Manifest[]) => only(manifests, "DaemonSet")["spec"].template;

describe("base", () => {
  test("kustomize takes every file", async () => {
    const { resources, configMapGenerator = [] } = await readKustomization(baseDir);
    const named = [...resources, ...configMapGenerator.flatMap(({ files }) => files), "kustomization.yaml"];
    expect((await readdir(baseDir)).sort()).toEqual(named.sort());
    expect(base.map(({ kind }) => kind).sort()).toEqual([
      "ClusterRoleBinding",
      "ConfigMap",
      "DaemonSet",
      "ServiceAccount",
    ]);
  });

  test("a changed configuration is another ConfigMap: it reaches agents by new pods, a few at a time", () => {
    const { metadata, immutable } = only(base, "ConfigMap");
    expect(immutable).toBe(true);
    const { volumes, initContainers } = podOf(base).spec;
    expect(volumes).toContainEqual({ name: "config", configMap: { name: metadata.name } });
    // New pods run it again, with the new configuration.
    expect(initContainers[0].volumeMounts).toContainEqual({
      name: "config",
      mountPath: "/etc/fairlead",
      readOnly: true,
    });
  });

  test("the role is kube-proxy's and nothing more", () => {
    const { roleRef, subjects } = only(base, "ClusterRoleBinding");
    expect(roleRef).toEqual({
      apiGroup: "rbac.authorization.k8s.io",
      kind: "ClusterRole",
      name: "system:node-proxier",
    });
    const { name, namespace } = only(base, "ServiceAccount").metadata;
    expect(subjects).toEqual([{ kind: "ServiceAccount", name, namespace }]);
    expect(podOf(base).spec.serviceAccountName).toBe(name);
  });

  test("the DaemonSet selects its pods, and all of them run on the node's network before anything else", () => {
    const { selector, template, updateStrategy } = only(base, "DaemonSet")["spec"];
    expect(template.metadata.labels).toMatchObject(selector.matchLabels);
    expect(updateStrategy).toEqual({ type: "RollingUpdate", rollingUpdate: { maxUnavailable: 1 } });
    expect(template.spec).toMatchObject({
      hostNetwork: true,
      priorityClassName: "system-node-critical",
      tolerations: [{ operator: "Exists" }],
      volumes: expect.arrayContaining([
        { name: "xtables-lock", hostPath: { path: "/run/xtables.lock", type: "FileOrCreate" } },
        { name: "state", hostPath: { path: "/var/lib/fairlead", type: "DirectoryOrCreate" } },
        { name: "run", hostPath: { path: "/run/fairlead", type: "DirectoryOrCreate" } },
        { name: "lib-modules", hostPath: { path: "/lib/modules" } },
      ]),
    });
  });

  test("every mount has its volume, and modules are read-only", () => {
    const { volumes, containers } = podOf(base).spec;
    const names = volumes.map(({ name }: { name: string }) => name);
    for (const mount of containers[0].volumeMounts) expect(names).toContain(mount.name);
    expect(containers[0].volumeMounts).toContainEqual({
      name: "lib-modules",
      mountPath: "/lib/modules",
      readOnly: true,
    });
  });

  test("probes ask where the agent answers", () => {
    const [container] = podOf(base).spec.containers;
    const result = agentConfig(container, only(base, "ConfigMap"), "config");
    expect(result).toMatchObject({ config: { healthzBindAddress: { port: container.ports[0].containerPort } } });
    expect(container.livenessProbe.httpGet).toEqual({ path: "/livez", port: "healthz" });
    expect(container.readinessProbe.httpGet).toEqual({ path: "/healthz", port: "healthz" });
  });

  test("the state folder is the one that is mounted", () => {
    const [container] = podOf(base).spec.containers;
    const result = agentConfig(container, only(base, "ConfigMap"), "config");
    const mount = container.volumeMounts.find(({ name }: { name: string }) => name === "state");
    expect(result).toMatchObject({ config: { stateDir: mount.mountPath } });
  });

  test("the kubeconfig names the server itself and the pod's own token", () => {
    const { clusters, users } = parse(only(base, "ConfigMap")["data"]["kubeconfig.conf"]);
    expect(clusters[0].cluster.server).toMatch(/^https:\/\/[a-z.]+\.example:6443$/);
    expect(users[0].user).toEqual({ tokenFile: "/var/run/secrets/kubernetes.io/serviceaccount/token" });
  });

  test("the image is the agent's version", async () => {
    expect(podOf(base).spec.containers[0].image).toBe(`ghcr.io/fairlead-dev/fairlead:${await agentVersion()}`);
  });
});

describe.each([
  ["base", {}],
  ["overlays/iptables", { mode: "iptables" }],
  ["overlays/ipvs", { mode: "ipvs" }],
  ["overlays/nftables", { mode: "nftables", nodePortAddresses: ["primary"] }],
  [
    "overlays/multi-cni",
    { mode: "iptables", clusterCIDRs: ["10.144.0.0/16"], multiCNI: { excludeClusterCIDRs: ["10.244.0.0/16"] } },
  ],
  ["overlays/privileged", {}],
])("%s", (folder, expected) => {
  test("its configuration is read without a warning", async () => {
    const configMap = await configMapOf(join(deployDir, folder));
    const result = agentConfig(podOf(base).spec.containers[0], configMap, "config");
    expect(result).toMatchObject({
      kind: "run",
      warnings: [],
      config: { ...expected, client: { kubeconfig: "/etc/fairlead/kubeconfig.conf" } },
    });
    expect(configMap["immutable"]).toBe(true);
  });
});

describe.each(["iptables", "ipvs", "nftables", "multi-cni", "privileged"])("overlay %s", (name) => {
  test("changes one thing that the base has", async () => {
    const dir = join(deployDir, "overlays", name);
    const { resources, patches = [], configMapGenerator = [] } = await readKustomization(dir);
    expect(resources).toEqual(["../../base"]);
    expect([...patches, ...configMapGenerator]).toHaveLength(1);
    for (const { behavior } of configMapGenerator) expect(behavior).toBe("merge");
    const changed = [...(await ownManifests(dir)), ...(patches.length > 0 ? [] : [await configMapOf(dir)])];
    const names = base.map(({ kind, metadata }) => `${kind}/${metadata.namespace}/${metadata.name}`);
    for (const { kind, metadata } of changed) {
      expect(names).toContain(`${kind}/${metadata.namespace}/${metadata.name}`);
    }
  });
});

describe("rights", () => {
  test("by default the agent has two capabilities and a read-only root", () => {
    const pod = podOf(base).spec;
    expect(pod.securityContext).toEqual({ seccompProfile: { type: "RuntimeDefault" } });
    expect(pod.containers.map(({ securityContext }: Manifest["spec"]) => securityContext)).toEqual([
      {
        allowPrivilegeEscalation: false,
        readOnlyRootFilesystem: true,
        capabilities: { drop: ["ALL"], add: ["NET_ADMIN", "NET_RAW"] },
      },
    ]);
  });

  test("the init container does its part with the agent's configuration and ends", () => {
    const pod = podOf(base).spec;
    const [init] = pod.initContainers;
    const result = agentConfig(init, only(base, "ConfigMap"), "config");
    expect(result).toMatchObject({ kind: "run", warnings: [], config: { action: { kind: "init-only" } } });
    expect(init.image).toBe(pod.containers[0].image);
    const volumes = pod.volumes.map(({ name }: { name: string }) => name);
    for (const mount of init.volumeMounts) expect(volumes).toContain(mount.name);
  });

  test("what the init container notes of the kernel is where the agent looks for it", () => {
    const { initContainers, containers } = podOf(base).spec;
    const seen = [initContainers[0], containers[0]].map((container) => {
      const parsed = agentConfig(container, only(base, "ConfigMap"), "config");
      const folder = parsed.kind === "run" ? parsed.config.stateDir : undefined;
      const mount = container.volumeMounts.find(({ mountPath }: { mountPath: string }) => mountPath === folder);
      return { folder, volume: mount?.name, readOnly: mount?.readOnly ?? false };
    });
    expect(seen).toEqual(
      Array.from({ length: 2 }, () => ({ folder: "/var/lib/fairlead", volume: "state", readOnly: false })),
    );
  });

  test("the privileged overlay gives the agent all of them, in place of the init container, and says when", async () => {
    const dir = join(deployDir, "overlays/privileged");
    const pod = podOf(await ownManifests(dir)).spec;
    expect(pod.containers).toEqual([
      { name: podOf(base).spec.containers[0].name, securityContext: { $patch: "replace", privileged: true } },
    ]);
    expect(pod.initContainers).toEqual([{ name: podOf(base).spec.initContainers[0].name, $patch: "delete" }]);
    expect(pod.securityContext).toEqual({ $patch: "delete" });
    expect(await readFile(join(dir, "daemonset.yaml"), "utf8")).toMatch(/^# .*\bIt is for nodes\b/m);
  });
});
