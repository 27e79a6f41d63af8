import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { createRunner, type RunOptions } from "@fairlead/kernel";
import { describe, expect, test } from "vitest";
import { parse, parseAllDocuments } from "yaml";
import { clusterPrograms } from "../kind/versions.ts";
import type { CniGround, CniNode } from "../src/cni/flavor.ts";
import { type ApiClient, objectPath } from "../src/control-plane/api-client.ts";
import { serviceAccountIn } from "../src/provider/kind/cluster.ts";
import { componentImages } from "../src/provider/kind/component-images.ts";
import { SharedStart, startedWith, withValues } from "../src/provider/kind/fairlead.ts";
import { kindConfig } from "../src/provider/kind/kind-cluster.ts";
import { networkOf } from "../src/provider/kind/machine.ts";
import { placedManifests, placeOf } from "../src/provider/kind/mixed.ts";
import { daemonSet, daemonsInPods } from "../src/provider/kind/networks/delegated.ts";
import { misplacedNetwork } from "../src/provider/kind/networks/install.ts";
import {
  imageName,
  imagesOf,
  type NetworkObject,
  objectsIn,
  settled,
  writeConfig,
} from "../src/provider/kind/networks/network.ts";
import { calicoVariables, kubeOvnScript, runtimeClassPatch } from "../src/provider/kind/published.ts";

const file = (path: string) => fileURLToPath(new URL(path, import.meta.url));

test("kind gets families, workers and what nodes share with the machine", () => {
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

test("every network's pods have the host ports that their containers name", async () => {
  const written: unknown[] = [];
  const exec = async (argv: readonly string[], options?: RunOptions) => {
    written.push(argv.at(-1), JSON.parse(String(options?.input)));
    return { stdout: "", stderr: "" };
  };
  await writeConfig({ exec }, "/etc/cni/net.d", "calico", { type: "test-ground" });
  const plugins = [{ type: "test-ground" }, { type: "portmap", capabilities: { portMappings: true } }];
  expect(written).toEqual(["/etc/cni/net.d/10-calico.conflist", { cniVersion: "1.0.0", name: "calico", plugins }]);
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
  const multiCNI = { clusterCIDRsFrom: ["calico-ippools"], excludeCIDRsFrom: ["kube-ovn-subnets"] };
  const given = withValues(manifest, shape, "https://172.30.0.2:6443", { learns: true, multiCNI }) as typeof filled;
  const documents = parseAllDocuments(given.data?.["config.conf"] ?? "").map((document) => document.toJS());
  expect(documents).toMatchObject([{ clusterCIDR: "" }, { multiCNI }]);
});

const SETTINGS = {
  podCIDRs: { IPv4: "10.144.0.0/16", IPv6: "fd00:144::/48" },
  families: ["IPv4"] as const,
  configFolder: "/etc/cni/calico.d",
  apiServer: { host: "172.30.0.2", port: 6443 },
};

/** What is looked at of Calico's manifest. */
const calico: readonly NetworkObject[] = [
  { kind: "CustomResourceDefinition" },
  {
    kind: "DaemonSet",
    spec: {
      template: {
        spec: {
          initContainers: [{ name: "install-cni", image: "quay.io/calico/cni:v3" }],
          containers: [
            {
              name: "calico-node",
              image: "quay.io/calico/node:v3",
              env: [{ name: "CALICO_IPV4POOL_IPIP", value: "Always" }, { name: "NODENAME" }],
            },
          ],
          volumes: [{ hostPath: { path: "/etc/cni/net.d" } }, { hostPath: { path: "/opt/cni/bin" } }],
        },
      },
    },
  },
  {
    kind: "Deployment",
    spec: { template: { spec: { containers: [{ name: "controllers", image: "quay.io/calico/node:v3" }] } } },
  },
];

const podOf = (objects: readonly NetworkObject[]) => objects[1]?.spec?.template?.spec;

test("Calico's manifest: pool without tunnels, the API server's real address, the folder of the runtime class", () => {
  const objects = settled(calico, SETTINGS, calicoVariables(SETTINGS));
  const [container] = podOf(objects)?.containers ?? [];
  const env = Object.fromEntries((container?.env ?? []).map(({ name, value }) => [name, value]));
  expect(env).toEqual({
    NODENAME: undefined,
    KUBERNETES_SERVICE_HOST: "172.30.0.2",
    KUBERNETES_SERVICE_PORT: "6443",
    CALICO_IPV4POOL_CIDR: "10.144.0.0/16",
    CALICO_IPV4POOL_IPIP: "Never",
    CALICO_IPV4POOL_VXLAN: "Never",
  });
  expect(podOf(objects)?.volumes?.map(({ hostPath }) => hostPath?.path)).toEqual(["/etc/cni/calico.d", "/opt/cni/bin"]);
  expect(objects[0]).toBe(calico[0]);
  expect(objects[2]).toBe(calico[2]);
});

test("images are pulled once, those of Deployments and init containers too", () => {
  expect(imagesOf(calico)).toEqual(["quay.io/calico/node:v3", "quay.io/calico/cni:v3"]);
});

test("flannel's manifest here has all that is filled in", async () => {
  const text = await readFile(new URL("../kind/flannel.yaml", import.meta.url), "utf8");
  const objects = settled(objectsIn(text.replace("@BACKEND@", "host-gw")), SETTINGS);
  const network = objects.find(({ data }) => data?.["net-conf.json"] !== undefined)?.data?.["net-conf.json"] ?? "";
  expect(JSON.parse(network)).toEqual({ Network: "10.144.0.0/16", Backend: { Type: "host-gw" } });
  expect(imagesOf(objects)).toEqual([imageName({ name: "flannel" })]);
  const pod = objects.find(({ kind }) => kind === "DaemonSet")?.spec?.template?.spec;
  expect(pod?.containers[0]?.env).toContainEqual({ name: "KUBERNETES_SERVICE_HOST", value: "172.30.0.2" });
  expect(pod?.volumes).toContainEqual(expect.objectContaining({ name: "flannel" }));
  expect(pod?.volumes?.map(({ hostPath }) => hostPath?.path)).toContain("/etc/cni/calico.d");
});

test("flannel's network is the cluster's, its backend stays", () => {
  const data = { "net-conf.json": '{"Network": "10.244.0.0/16", "Backend": {"Type": "vxlan"}}', "cni-conf.json": "{}" };
  const families = ["IPv4", "IPv6"] as const;
  const [object] = settled([{ kind: "ConfigMap", data }], { ...SETTINGS, families });
  expect(JSON.parse(object?.data?.["net-conf.json"] ?? "")).toEqual({
    Network: "10.144.0.0/16",
    EnableIPv6: true,
    IPv6Network: "fd00:144::/48",
    Backend: { Type: "vxlan" },
  });
  expect(object?.data?.["cni-conf.json"]).toBe("{}");
});

const SERVICE_CIDRS = { IPv4: "10.96.0.0/12", IPv6: "fd00:10:96::/108" };
const SCRIPT = `POD_CIDR="10.16.0.0/16"                # Do NOT overlap
POD_GATEWAY="10.16.0.1"
SVC_CIDR="10.96.0.0/12"
CNI_CONF_DIR="/etc/cni/net.d"
if [ "$IPV6" = "true" ]; then
  POD_CIDR="fd00:10:16::/64"
fi
kubectl apply -f ovn.yaml --cidr=$POD_CIDR
`;

test("kube-ovn's script has the cluster's values, wherever it sets them", () => {
  expect(kubeOvnScript(SCRIPT, { ...SETTINGS, families: ["IPv4", "IPv6"] }, SERVICE_CIDRS)).toBe(`\
POD_CIDR="10.144.0.0/16,fd00:144::/48"
POD_GATEWAY="10.144.0.1,fd00:144::1"
SVC_CIDR="10.96.0.0/12,fd00:10:96::/108"
CNI_CONF_DIR="/etc/cni/calico.d"
if [ "$IPV6" = "true" ]; then
  POD_CIDR="10.144.0.0/16,fd00:144::/48"
fi
kubectl apply -f ovn.yaml --cidr=$POD_CIDR
`);
  expect(() => kubeOvnScript("POD_CIDR=1\n", SETTINGS, SERVICE_CIDRS)).toThrow("no longer has POD_GATEWAY");
});

test("nodes of published images get the runtime classes", () => {
  const containerdPatches = [runtimeClassPatch("ovn")];
  const cluster = { families: ["IPv4"] as const, workers: 2, podCIDRs: [], serviceCIDRs: [], mounts: [] };
  expect(parse(kindConfig({ ...cluster, containerdPatches })).containerdConfigPatches).toEqual(containerdPatches);
  expect(containerdPatches[0]).toContain("runtimes.ovn]\n");
  expect(containerdPatches[0]).toContain("cni_conf_dir = '/etc/cni/ovn.d'");
});

const SELECTOR = { "app.kubernetes.io/name": "fairlead" };
const MANIFESTS = [
  { kind: "ServiceAccount", metadata: { name: "fairlead" } },
  { kind: "ConfigMap", metadata: { name: "fairlead-0a1b" } },
  {
    kind: "DaemonSet",
    metadata: { name: "fairlead" },
    spec: {
      selector: { matchLabels: SELECTOR },
      template: { metadata: { labels: SELECTOR }, spec: { hostNetwork: true, nodeSelector: { os: "linux" } } },
    },
  },
];

test("a second DaemonSet has its own pods, on nodes with its label; tools still find its agents", () => {
  const labels = { ...SELECTOR, "fairlead.dev/test-proxy": "fairlead-nftables" };
  expect(placedManifests(MANIFESTS, "fairlead-nftables")).toEqual([
    MANIFESTS[1],
    {
      kind: "DaemonSet",
      metadata: { name: "fairlead-nftables" },
      spec: {
        selector: { matchLabels: labels },
        template: {
          metadata: { labels },
          spec: { hostNetwork: true, nodeSelector: { "fairlead.dev/test-proxy": "fairlead-nftables" } },
        },
      },
    },
  ]);
});

test.each([
  [{ mode: "iptables" }, undefined],
  [{ mode: "nftables" }, "fairlead-nftables"],
  [{ mode: "iptables", kubeProxy: "kube-proxy" }, "kube-proxy"],
])("a node that is to have %j has the label %s", (proxy, place) => {
  expect(placeOf({ mode: "iptables" }, proxy)).toBe(place);
});

const { namespace } = networkOf(process.pid);
const node = (name: string, index: number): CniNode => {
  return { name, index, addresses: {}, namespace, runner: createRunner() };
};
const FIELDS = { network: "calico", image: "localhost/calico:made-here", folder: "/run-1/calico", nodeFolder: "/n" };

const daemon = (name: string): Parameters<CniGround["daemon"]>[0] => ({
  node: node(name, 1),
  name: `${name}-bird`,
  argv: ["bird", "-c", `/run-1/calico/${name}.conf`, "-s", `/run-1/calico/${name}2.ctl`],
  env: { RUNDIR: `/run-1/calico/${name}` },
});

describe("a network's daemon as a DaemonSet", () => {
  const daemonOn = (name: string) => daemonSet(FIELDS, daemon(name));

  test("is the same whichever node asks for it", () => {
    expect(daemonOn("worker").metadata.name).toBe("calico-bird");
    expect(daemonOn("worker").metadata).toEqual(daemonOn("worker-3").metadata);
    expect(objectPath(daemonOn("worker"))).toBe("/apis/apps/v1/namespaces/kube-system/daemonsets/calico-bird");
  });

  test("the node's name is the pod's to fill in, and another's that begins with it is not", () => {
    const { template } = daemonOn("worker")["spec"] as { template: { spec: { containers: readonly unknown[] } } };
    expect(template.spec.containers).toMatchObject([
      {
        command: ["bird", "-c", "/run-1/calico/$(NODE_NAME).conf", "-s", "/run-1/calico/worker2.ctl"],
        env: [{ name: "NODE_NAME" }, { name: "RUNDIR", value: "/run-1/calico/$(NODE_NAME)" }],
        volumeMounts: [{ mountPath: "/run-1/calico" }],
      },
    ]);
  });
});

test("a daemon on one more node is one more label, and waited for until it runs", async () => {
  const asked: string[] = [];
  let looks = 0;
  const api: ApiClient = {
    create: async (object) => {
      asked.push(`create ${object.metadata.name}`);
      return object;
    },
    patch: async (path, patch) => {
      asked.push(`patch ${path} ${JSON.stringify(patch)}`);
      return daemonSet(FIELDS, daemon("worker"));
    },
    get: async () => {
      looks++;
      return { items: looks < 2 ? [] : [{ status: { containerStatuses: [{ ready: true }] } }] };
    },
    delete: async () => {},
  };
  const start = daemonsInPods(FIELDS, api);
  await start(daemon("worker"));
  expect(looks).toBe(2);
  await start(daemon("worker-3"));
  const label = '{"metadata":{"labels":{"fairlead.dev/e2e-calico-bird":""}}}';
  expect(asked).toEqual([
    "create calico-bird",
    `patch /api/v1/nodes/worker ${label}`,
    `patch /api/v1/nodes/worker-3 ${label}`,
  ]);
});

test("the agents of a DaemonSet get another ConfigMap, flags after their own, and what they remember by its name", () => {
  const containers = [{ name: "fairlead", args: ["--state-dir=/var/lib/fairlead"] }];
  const volumes = [
    { name: "config", configMap: { name: "fairlead" } },
    { name: "run", hostPath: { path: "/run" } },
  ];
  const manifest = { kind: "DaemonSet", spec: { template: { spec: { containers, volumes } } } };
  expect(startedWith(manifest, "fairlead-1", { memory: "spec-1", flags: ["--v=3"] })).toMatchObject({
    spec: {
      template: {
        spec: {
          containers: [{ args: ["--state-dir=/var/lib/fairlead", "--state-dir=/var/lib/fairlead/spec-1", "--v=3"] }],
          volumes: [{ configMap: { name: "fairlead-1" } }, volumes[1]],
        },
      },
    },
  });
});

test("agents of all nodes that are started in another way are one change, and the same way again changes nothing", async () => {
  const applied: unknown[] = [];
  const start = new SharedStart(async (how) => void applied.push(how));
  await start.apply({});
  const flags = ["--v=3"];
  expect(await Promise.all([start.change({ flags }), start.change({ flags })])).toEqual([true, true]);
  expect(await start.change({ flags })).toBe(false);
  const multiCNI = { excludeCIDRsFrom: ["nodes"] };
  expect(await start.change({ flags, multiCNI })).toBe(true);
  expect(await start.change({})).toBe(true);
  expect(applied).toEqual([{}, { flags }, { flags, multiCNI }, {}]);
});

test("a change that failed is tried again", async () => {
  let fails = true;
  const start = new SharedStart(() => (fails ? Promise.reject(new Error("no rollout")) : Promise.resolve()));
  await expect(start.change({ flags: ["--v=3"] })).rejects.toThrow("no rollout");
  fails = false;
  expect(await start.change({ flags: ["--v=3"] })).toBe(true);
});

test("the first pod of a namespace waits for the namespace's service account", async () => {
  const answers = [new Error("404"), new Error("404"), { kind: "ServiceAccount" }];
  const asked: string[] = [];
  const get = async (path: string) => {
    asked.push(path);
    const answer = answers.shift();
    if (answer instanceof Error) throw answer;
    return answer;
  };
  await serviceAccountIn({ get }, "spec-26");
  expect(asked).toEqual(Array.from({ length: 3 }, () => "/api/v1/namespaces/spec-26/serviceaccounts/default"));
});
