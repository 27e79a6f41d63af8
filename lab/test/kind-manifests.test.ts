import { readFile } from "node:fs/promises";
import { expect, test } from "vitest";
import { parse } from "yaml";
import { kindConfig } from "../src/provider/kind/kind-cluster.ts";
import { imagesOf, type NetworkObject, objectsIn, settled } from "../src/provider/kind/networks/manifest.ts";
import { imageName } from "../src/provider/kind/networks/network.ts";
import { calicoVariables, kubeOvnScript, runtimeClassPatch } from "../src/provider/kind/published.ts";

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
  expect(() => kubeOvnScript("POD_CIDR=1\n", SETTINGS, SERVICE_CIDRS)).toThrow("no POD_GATEWAY any more");
});

test("nodes of published images are told of the runtime classes", () => {
  const containerdPatches = [runtimeClassPatch("ovn")];
  const cluster = { families: ["IPv4"] as const, workers: 2, podCIDRs: [], serviceCIDRs: [], mounts: [] };
  expect(parse(kindConfig({ ...cluster, containerdPatches })).containerdConfigPatches).toEqual(containerdPatches);
  expect(containerdPatches[0]).toContain("runtimes.ovn]\n");
  expect(containerdPatches[0]).toContain("cni_conf_dir = '/etc/cni/ovn.d'");
});
