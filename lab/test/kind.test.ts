import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { parse, parseAllDocuments } from "yaml";
import { clusterPrograms } from "../kind/versions.ts";
import { componentImages } from "../src/provider/kind/component-images.ts";
import { withValues } from "../src/provider/kind/fairlead.ts";
import { kindConfig } from "../src/provider/kind/kind-cluster.ts";
import { misplacedNetwork } from "../src/provider/kind/networks/install.ts";

const file = (path: string) => fileURLToPath(new URL(path, import.meta.url));

test("kind is told of families, workers and what nodes share with the machine", () => {
  const config = parse(
    kindConfig({
      families: ["IPv4", "IPv6"],
      workers: 2,
      podCIDRs: ["10.143.0.0/16", "fd00:143::/48"],
      serviceCIDRs: ["10.96.0.0/12"],
      mounts: [{ hostPath: "/cache", containerPath: "/kind/images", readOnly: true }],
    }),
  );
  expect(config.networking).toMatchObject({ ipFamily: "dual", kubeProxyMode: "none", disableDefaultCNI: true });
  expect(config.networking.podSubnet).toBe("10.143.0.0/16,fd00:143::/48");
  expect(config.nodes.map(({ role }: { role: string }) => role)).toEqual(["control-plane", "worker", "worker"]);
  for (const { extraMounts } of config.nodes) {
    expect(extraMounts).toEqual([{ hostPath: "/cache", containerPath: "/kind/images", readOnly: true }]);
  }
});

test("images have names of their own, and what they are made of is built", () => {
  const others = ["etcd", "kube-apiserver", "kube-controller-manager"];
  const names = [...Object.keys(clusterPrograms), ...others];
  const programs = Object.fromEntries(names.map((name) => [name, `/bin/${name}`])) as Parameters<
    typeof componentImages
  >[0]["programs"];
  const images = componentImages({ kubernetes: "v1.36.3", programs, pause: "/pause", moduleFolder: "/module" });
  const all = images.flatMap((image) => image.names);
  expect(new Set(all).size).toBe(all.length);
  expect(all).toEqual(expect.arrayContaining(["registry.k8s.io/kube-proxy:v1.36.3", "registry.k8s.io/etcd:3.6.8-0"]));
  const sources = images.flatMap(({ parts }) => parts.flatMap((part) => (part === "tools" ? [] : Object.values(part))));
  expect(sources).not.toContain(undefined);
});

test("networks that take the nodes' CIDRs come first", () => {
  expect(misplacedNetwork({ cni: ["flannel", "calico", "ovn"] })).toBeUndefined();
  expect(misplacedNetwork({ cni: ["calico", "bridge"] })).toMatch(/^bridge takes .* name it first/);
});

test("a cluster's own values are filled into the manifests of deploy/", async () => {
  const names = ["config.conf", "kubeconfig.conf"];
  const texts = names.map(async (name) => [name, await readFile(file(`../../deploy/base/${name}`), "utf8")]);
  const manifest = { kind: "ConfigMap", data: Object.fromEntries(await Promise.all(texts)) };
  const network = { ownLoadBalancer: false, mtu: 1500 };
  const shape = {
    provider: "kind",
    mode: "iptables",
    families: ["IPv4"] as const,
    nodeNames: [],
    networks: [
      { ...network, name: "calico", podCIDRs: { IPv4: "10.144.0.0/16" }, excluded: false },
      { ...network, name: "ovn", podCIDRs: { IPv4: "10.244.0.0/16" }, excluded: true },
    ],
  };
  const filled = withValues(manifest, shape, "https://172.30.0.2:6443") as {
    readonly data?: Record<string, string>;
    readonly metadata?: { readonly name: string };
  };
  const { data } = filled;
  const [proxy, fairlead] = parseAllDocuments(data?.["config.conf"] ?? "").map((document) => document.toJS());
  expect(proxy).toMatchObject({ kind: "KubeProxyConfiguration", clusterCIDR: "10.144.0.0/16" });
  expect(fairlead).toMatchObject({ multiCNI: { excludeClusterCIDRs: ["10.244.0.0/16"] } });
  expect(parse(data?.["kubeconfig.conf"] ?? "").clusters[0].cluster).toMatchObject({
    "certificate-authority": "/var/run/secrets/kubernetes.io/serviceaccount/ca.crt",
    server: "https://172.30.0.2:6443",
  });
  const learning = withValues(manifest, shape, "https://172.30.0.2:6443", { learns: true }) as typeof filled;
  expect(learning.data?.["config.conf"]).not.toMatch(/10\.[12]44\./);
  expect(learning.metadata?.name).not.toBe(filled.metadata?.name);
});
