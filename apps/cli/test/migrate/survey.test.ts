import { describe, expect, test } from "vitest";
import { parseAllDocuments } from "yaml";
import { survey } from "../../src/migrate/survey.ts";
import {
  API_SERVICE,
  CONFIG_CONF,
  CONFIG_MAP,
  KUBE_PROXY,
  KUBECONFIG_CONF,
  kubeProxyWith,
} from "./simulated-cluster.ts";

const objects = {
  kubeProxy: KUBE_PROXY,
  configMaps: new Map([["kube-proxy", CONFIG_MAP]]),
  apiService: API_SERVICE,
  networks: new Map<string, readonly unknown[]>(),
};
const options = { image: "fairlead:1", excludeClusterCIDRs: [], apiServer: undefined, version: "0.0.0" };

const documents = (text = "") => [...parseAllDocuments(text)].map((document) => document.toJS());

test("kubeadm's configuration fits: its file, with Fairlead's own path of the kubeconfig", () => {
  const { findings, installation } = survey(objects, options);
  expect(findings).toEqual([
    { topic: "configuration", state: "fits", found: "mode nftables, clusterCIDR 10.144.0.0/16" },
    { topic: "API server", state: "fits", found: "https://cp.example:6443" },
  ]);
  expect(installation).toMatchObject({
    options: { image: "fairlead:1" },
    flags: [],
    files: { "kubeconfig.conf": KUBECONFIG_CONF },
  });
  const text = installation?.files["config.conf"];
  expect(text).toBe(CONFIG_CONF.replace("/var/lib/kube-proxy", "/etc/fairlead"));
});

test("CIDRs of other networks go into a document of Fairlead's own", () => {
  const { installation, config } = survey(objects, { ...options, excludeClusterCIDRs: ["10.244.0.0/16"] });
  expect(config?.multiCNI.excludeClusterCIDRs).toEqual(["10.244.0.0/16"]);
  expect(documents(installation?.files["config.conf"]).map(({ kind }) => kind)).toEqual([
    "KubeProxyConfiguration",
    "FairleadConfiguration",
  ]);
});

test("flags next to --config are taken over, and those without effect are reported", () => {
  const { findings, installation } = survey(
    { ...objects, kubeProxy: kubeProxyWith({}, ["--v=4", "--cluster-cidr=10.0.0.0/8"]) },
    options,
  );
  expect(installation?.flags).toEqual(["--v=4", "--cluster-cidr=10.0.0.0/8"]);
  const differing = findings.filter(({ state }) => state === "differs").map(({ found }) => found);
  expect(differing).toEqual(["--config is set; ignoring these flags: --cluster-cidr"]);
});

/** As EKS has it. */
describe("a file and a kubeconfig in ConfigMaps of their own", () => {
  const CONFIG = "--config=/var/lib/kube-proxy-config/config";
  const mounts = { config: "/var/lib/kube-proxy-config/", kubeconfig: "/var/lib/kube-proxy" };
  const [container] = KUBE_PROXY.spec.template.spec.containers;
  const kubeProxy = kubeProxyWith({
    containers: [
      {
        ...container,
        command: ["kube-proxy", "--v=2", CONFIG, "--hostname-override=$(NODE_NAME)"],
        volumeMounts: Object.entries(mounts).map(([name, mountPath]) => ({ name, mountPath })),
      },
    ],
    volumes: [
      { name: "config", configMap: { name: "kube-proxy-config" } },
      { name: "kubeconfig", configMap: { name: "kube-proxy" } },
    ],
  });
  const file = CONFIG_CONF.replace("kubeconfig.conf", "kubeconfig");
  const configMaps = new Map([
    ["kube-proxy-config", { data: { config: file } }],
    ["kube-proxy", { data: { kubeconfig: KUBECONFIG_CONF } }],
  ]);

  test("fit", () => {
    const { installation } = survey({ ...objects, kubeProxy, configMaps }, options);
    expect(installation).toMatchObject({ flags: ["--v=2"], files: { "kubeconfig.conf": KUBECONFIG_CONF } });
    expect(documents(installation?.files["config.conf"])[0].clientConnection.kubeconfig).toBe(
      "/etc/fairlead/kubeconfig.conf",
    );
  });

  test.each([
    [
      "without the kubeconfig",
      file,
      new Map([["kube-proxy-config", { data: { config: file } }]]),
      /^ConfigMap kube-proxy has no kubeconfig$/,
    ],
    [
      "with a kubeconfig of the node's",
      file.replace("/var/lib/kube-proxy/", "/etc/kubernetes/"),
      configMaps,
      /^kube-proxy's kubeconfig \/etc\/kubernetes\/kubeconfig is in no ConfigMap$/,
    ],
  ])("%s they block", (_what, config, given, found) => {
    const own = new Map<string, unknown>([...given, ["kube-proxy-config", { data: { config } }]]);
    const { findings } = survey({ ...objects, kubeProxy, configMaps: own }, options);
    expect(findings).toContainEqual(expect.objectContaining({ state: "blocks", found: expect.stringMatching(found) }));
  });
});

describe("what blocks", () => {
  test.each([
    ["a Service's address", KUBECONFIG_CONF.replace("cp.example", "10.96.0.1"), /10\.96\.0\.1.*address of a Service/],
    ["of IPv6", KUBECONFIG_CONF.replace("cp.example", "[fd00::1]"), /\[fd00::1\].*address of a Service/],
    ["no address", KUBECONFIG_CONF.replace("https://cp.example:6443", "''"), /is not a URL/],
  ])("%s for the API server, until --api-server names another", (_what, kubeconfig, found) => {
    const own = { data: { ...CONFIG_MAP.data, "kubeconfig.conf": kubeconfig } };
    const blocked = survey({ ...objects, configMaps: new Map([["kube-proxy", own]]) }, options);
    expect(blocked.findings.at(-1)).toMatchObject({ state: "blocks", found: expect.stringMatching(found) });
    expect(blocked.installation).toBeUndefined();
    const { installation } = survey(
      { ...objects, configMaps: new Map([["kube-proxy", own]]) },
      { ...options, apiServer: "https://192.0.2.1:6443" },
    );
    expect(documents(installation?.files["kubeconfig.conf"])[0].clusters[0].cluster.server).toBe(
      "https://192.0.2.1:6443",
    );
  });

  test.each([
    ["a wrong value", CONFIG_CONF.replace("10.144.0.0/16", "10.144.0.0/99"), /clusterCIDR\[0\]: 10\.144\.0\.0\/99/],
    ["no YAML", "kind: [", /config\.conf: /],
  ])("%s in the file", (_what, text, found) => {
    const { findings, installation } = survey(
      { ...objects, configMaps: new Map([["kube-proxy", { data: { ...CONFIG_MAP.data, "config.conf": text } }]]) },
      options,
    );
    expect(findings).toContainEqual(expect.objectContaining({ state: "blocks", found: expect.stringMatching(found) }));
    expect(installation).toBeUndefined();
  });

  test.each([
    ["no ConfigMap", undefined, KUBE_PROXY, /has no config\.conf/],
    ["no file at all", CONFIG_MAP, kubeProxyWith({ volumes: [] }), /no --config that a ConfigMap is mounted for/],
    ["an unknown flag", CONFIG_MAP, kubeProxyWith({}, ["--nonsense=1"]), /nonsense/],
  ])("%s", (_what, own, daemonSet, found) => {
    const { findings } = survey(
      { ...objects, configMaps: new Map([["kube-proxy", own]]), kubeProxy: daemonSet },
      options,
    );
    expect(findings).toContainEqual(expect.objectContaining({ state: "blocks", found: expect.stringMatching(found) }));
  });
});

describe("networks", () => {
  const subnet = { metadata: { name: "ovn-default" }, spec: { cidrBlock: "10.244.0.0/16" } };
  const pool = { metadata: { name: "default" }, spec: { cidr: "10.144.0.0/16" } };
  const networks = new Map([
    ["subnets.kubeovn.io", [subnet]],
    ["ippools.crd.projectcalico.org", [pool]],
  ]);

  test("the one that clusterCIDR has fits, another is reported with what can be done", () => {
    const reported = survey({ ...objects, networks }, options).findings.filter(({ topic }) => topic === "networks");
    expect(reported).toEqual([
      expect.objectContaining({
        state: "differs",
        advice: expect.stringContaining("--exclude-cluster-cidr=10.244.0.0/16;"),
      }),
      { topic: "networks", state: "fits", found: "calico-ippools: 10.144.0.0/16" },
    ]);
  });

  test("of kube-ovn's VPCs the one that is the default counts", () => {
    const vpcs = [{ metadata: { name: "main" }, status: { default: true } }];
    const subnets = ["main", "ovn-cluster"].map((vpc, at) => ({ spec: { vpc, cidrBlock: `10.24${at}.0.0/16` } }));
    const both = new Map<string, readonly unknown[]>([
      ["vpcs.kubeovn.io", vpcs],
      ["subnets.kubeovn.io", subnets],
    ]);
    const reported = survey({ ...objects, networks: both }, options).findings.filter(
      ({ topic }) => topic === "networks",
    );
    expect(reported.map(({ found }) => found)).toEqual([
      "kube-ovn-subnets: 10.240.0.0/16; not in clusterCIDR: 10.240.0.0/16",
    ]);
  });

  test("excluded, it fits", () => {
    const reported = survey({ ...objects, networks }, { ...options, excludeClusterCIDRs: ["10.244.0.0/16"] }).findings;
    expect(reported.map(({ state }) => state)).toEqual(["fits", "fits", "fits", "fits"]);
  });
});
