import { ClusterState } from "@fairlead/core";
import { nodeOptions } from "@fairlead/inspect";
import { goldenScenario } from "@fairlead/testkit";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { reportText } from "../src/commands/verify/run.ts";
import { plain } from "../src/frame/terminal.ts";
import { agentSetup } from "../src/inputs/agent.ts";
import { runningConfig } from "../src/node/proxy-config.ts";
import { NodeCluster, type NodesState } from "./support/node-cluster.ts";
import { nodePrograms } from "./support/recorded.ts";
import { fairlead as run } from "./support/run.ts";

/**
 * The objects and rules of the scenario are those of a proxy in iptables mode with --cluster-cidr 10.144.0.0/16:
 * without it, or in another mode, nearly everything differs.
 */
const scenario = goldenScenario("09-loadbalancer");
const stdin = JSON.stringify(scenario.objects);
const cluster = new NodeCluster();
beforeAll(() => cluster.start());
afterAll(() => cluster.stop());

const KUBE_PROXY = {
  apiVersion: "kubeproxy.config.k8s.io/v1alpha1",
  kind: "KubeProxyConfiguration",
  mode: "iptables",
  clusterCIDR: "10.144.0.0/16",
};
const FAIRLEAD = { apiVersion: "fairlead.dev/v1alpha1", kind: "FairleadConfiguration" };
const configz = (kubeProxy: object = {}, fairlead: object | null = FAIRLEAD) => ({
  "kubeproxy.config.k8s.io": { ...KUBE_PROXY, ...kubeProxy },
  ...(fairlead && { "fairlead.dev": fairlead }),
});
const programs = nodePrograms(scenario.iptables);

function node(endpoint: NodesState["endpoint"]) {
  const labels = { "k8s-app": "kube-proxy" };
  cluster.set({ pods: [{ node: "node-a", name: "proxy-x7k2p", labels, container: "proxy" }], programs, endpoint });
}

const onNode = (...line: readonly string[]) =>
  run([...line, "-f", "-", "--on", "node-a"], { stdin, env: { KUBECONFIG: cluster.kubeconfig } });

describe("the configuration of a live node is asked for", () => {
  test("the running proxy says it, and the tool says so", async () => {
    node({ "/configz": configz(), "/proxyMode": "iptables" });
    const { code, out, err } = await onNode("verify");
    expect(err).toBe("configuration: the proxy on node-a, iptables mode\n");
    expect(out).toBe("OK: nothing differs (IPv4)\n");
    expect(code).toBe(0);
  });

  test("what Fairlead has alongside kube-proxy's counts", async () => {
    const multiCNI = { excludeClusterCIDRs: ["10.144.0.0/16"] };
    node({ "/configz": configz({ clusterCIDR: "" }, { ...FAIRLEAD, multiCNI }), "/proxyMode": "iptables" });
    const { out } = await onNode("explain", "lb");
    expect(out).toContain("IPv4: foreign");
  });

  test("kube-proxy does not know Fairlead's annotation", async () => {
    const [service, ...others] = JSON.parse(stdin).toSorted((one: { kind: string }) =>
      one.kind === "Service" ? -1 : 1,
    );
    const annotated = {
      ...service,
      metadata: { ...service.metadata, annotations: { "fairlead.dev/ownership": "foreign" } },
    };
    const text = JSON.stringify([annotated, ...others]);
    const ask = () =>
      run(["explain", service.metadata.name, "-f", "-", "--on", "node-a"], {
        stdin: text,
        env: { KUBECONFIG: cluster.kubeconfig },
      });
    node({ "/configz": configz({}, null), "/proxyMode": "iptables" });
    expect((await ask()).out).toContain("IPv4: ours");
    node({ "/configz": configz(), "/proxyMode": "iptables" });
    expect((await ask()).out).toContain("IPv4: foreign");
  });

  test.each([
    ["kube-proxy's primary serves every address of a family in which the Node has no address", null, { kind: "all" }],
    ["Fairlead's none", FAIRLEAD, { kind: "list", addresses: [] }],
  ])("%s", async (_name, own, expected) => {
    const pages: Readonly<Record<string, string>> = {
      "/configz": JSON.stringify(configz({ mode: "nftables" }, own)),
      "/proxyMode": "nftables",
    };
    const ask = async (_port: number, path: string) => ({ status: 200, text: pages[path] ?? "" });
    const base = await runningConfig({ ask, nameOf: String }, 10_249, "the proxy");
    const none = { config: undefined, mode: undefined, memory: undefined, "service-proxy-name": undefined };
    const lists = { "cluster-cidr": [], "exclude-cluster-cidr": [], "agent-flag": [], "node-address": [] };
    const setup = agentSetup({ ...none, ...lists, "metrics-port": undefined }, { warn: () => {} }, { base });
    const cluster = {
      state: new ClusterState(),
      problems: [],
      node: { name: "node-a", addresses: ["10.201.0.10"], podCIDRs: [], goingAway: false },
    };
    const { nodePortAddresses } = nodeOptions({ ...setup, cluster, nodeName: "node-a" });
    expect(nodePortAddresses["IPv6"]).toEqual(expected);
    expect(nodePortAddresses["IPv4"]).toEqual({ kind: "list", addresses: ["10.201.0.10"] });
  });

  test("the mode that really runs counts", async () => {
    node({ "/configz": configz({ mode: "ipvs" }), "/proxyMode": "iptables" });
    expect((await onNode("explain", "lb")).out).toContain("iptables mode");
  });

  test("doctor learns how many objects the kernel refuses; kube-proxy does not say", async () => {
    const pages = { "/configz": configz(), "/proxyMode": "iptables" };
    const metrics = ["IPv4", "IPv6"].map((family) => `fairlead_refused_objects{ip_family="${family}"} 1\n`).join("");
    const refused = async () => {
      const { out } = await run(["doctor", "--on", "node-a", "-o", "json"], {
        env: { KUBECONFIG: cluster.kubeconfig },
      });
      const all: readonly { readonly check: string; readonly found: string }[] = JSON.parse(out);
      return all.flatMap(({ check, found }) => (check === "what the kernel refuses" ? [found] : []));
    };
    node({ ...pages, "/metrics": metrics });
    expect(await refused()).toEqual(["objects that the running proxy leaves out: 2; all others are in place"]);
    node({ ...pages, "/metrics": "" });
    expect(await refused()).toEqual([]);
  });

  test("flags override it, and are compared", async () => {
    node({ "/configz": configz(), "/proxyMode": "iptables" });
    const { err, out } = await onNode("explain", "lb", "--mode", "nftables", "--cluster-cidr", "10.144.0.0/16");
    expect(err).toBe(
      "the proxy on node-a has mode iptables, --mode says nftables: the latter is used\n" +
        "configuration: the proxy on node-a, nftables mode\n",
    );
    expect(out).toContain("nftables mode");
  });

  test("a proxy without /configz is as its ConfigMap says that it was installed with", async () => {
    node({});
    const pod = cluster.api.store.list("/api/v1/pods")[0] as { readonly spec: object };
    const command = ["kube-proxy", "--config=/var/lib/kube-proxy/config.conf", "--hostname-override=$(NODE_NAME)"];
    const volumeMounts = [{ name: "config", mountPath: "/var/lib/kube-proxy" }];
    const volumes = [{ name: "config", configMap: { name: "kube-proxy" } }];
    const containers = [{ name: "proxy", command, volumeMounts }];
    cluster.api.store.put("/api/v1/pods", { ...pod, spec: { ...pod.spec, containers, volumes } });
    cluster.api.store.put("/api/v1/configmaps", {
      metadata: { name: "kube-proxy", namespace: "kube-system" },
      data: { "config.conf": JSON.stringify(KUBE_PROXY) },
    });
    const { code, err } = await onNode("verify");
    expect(err).toBe(
      "configuration: ConfigMap kube-system/kube-proxy, iptables mode; port 10249 of pod kube-system/proxy-x7k2p: /configz answers 404\n",
    );
    expect(code).toBe(0);
    cluster.api.store.delete("/api/v1/configmaps", "kube-system/kube-proxy");
  });

  test("with nothing known, and nothing given, there is no wall of red but exit code 3", async () => {
    node({});
    cluster.api.store.put("/api/v1/nodes", { metadata: { name: "node-a" } });
    const env = { KUBECONFIG: cluster.kubeconfig };
    const { code, out, err } = await run(["explain", "lb", "--on", "node-a"], { env });
    expect(out).toBe("");
    expect(err).toMatch(
      /^the configuration of the proxy is not known: .*answers 404; .*; give it with --config, or with --mode and --cluster-cidr\n$/,
    );
    expect(code).toBe(3);
  });

  test("given by flags only, it says that nothing was compared", async () => {
    node({});
    const { err, code } = await onNode("verify", "--cluster-cidr", "10.144.0.0/16");
    expect(err).toMatch(/^configuration: as the options say; not compared: .*answers 404/);
    expect(code).toBe(0);
  });

  test("names of Go's fields, as kube-proxy before Kubernetes 1.31 has them, are not a configuration", async () => {
    node({ "/configz": { "kubeproxy.config.k8s.io": { Mode: "iptables" } }, "/proxyMode": "iptables" });
    expect((await onNode("verify", "--cluster-cidr", "10.144.0.0/16")).err).toContain(
      "/configz has no KubeProxyConfiguration v1alpha1",
    );
  });
});

describe("where most services differ", () => {
  const differing = (count: number) =>
    Array.from({ length: count }, (_, at) => {
      const finding = { kind: "missing", where: "nat KUBE-SERVICES", what: `-d 10.96.0.${at}` } as const;
      return { service: `shop/web-${at}`, kind: "missing", findings: [finding] } as const;
    });
  const report = (planned: number, count: number) =>
    reportText([{ family: "IPv4", planned, services: differing(count) }], plain);

  test("the first line says what that looks like", () => {
    expect(report(5, 3).split("\n")[0]).toBe(
      "3 of 5 services differ: this looks like another configuration (mode, CIDRs) than that of the proxy, or like no proxy at all",
    );
  });

  test.each([
    ["half of them", 6, 3],
    ["so few that it says nothing", 2, 2],
  ])("not of %s", (_what, planned, count) => {
    expect(report(planned, count)).toMatch(/^shop\/web-0 IPv4: missing/);
  });
});

describe("with files", () => {
  const configMap = {
    apiVersion: "v1",
    kind: "ConfigMap",
    metadata: { name: "kube-proxy", namespace: "kube-system" },
    data: {
      "config.conf": `apiVersion: ${KUBE_PROXY.apiVersion}\nkind: ${KUBE_PROXY.kind}\nclusterCIDR: 10.144.0.0/16\n`,
    },
  };
  const files = (objects: unknown, ...line: readonly string[]) =>
    run(["plan", "-f", "-", "--node", "node-a", "-o", "summary", ...line], { stdin: JSON.stringify(objects) });

  test("a ConfigMap in them counts", async () => {
    const { err, code } = await files([...JSON.parse(stdin), configMap]);
    expect(err).toBe("configuration: ConfigMap kube-system/kube-proxy, iptables mode\n");
    expect(code).toBe(0);
  });

  test("two of them need an option", async () => {
    const second = { ...configMap, metadata: { ...configMap.metadata, name: "other" } };
    const { err } = await files([...JSON.parse(stdin), configMap, second]);
    expect(err).toMatch(
      /^configuration: assumed .*several configurations: ConfigMap kube-system\/kube-proxy, ConfigMap kube-system\/other/,
    );
  });

  test("nothing that is known is assumed, and said", async () => {
    const { err, code } = await files(JSON.parse(stdin));
    expect(err).toBe(
      "configuration: assumed iptables mode and no --cluster-cidr; the files have no ConfigMap with a KubeProxyConfiguration\n",
    );
    expect(code).toBe(0);
  });

  test("what is given is not remarked on", async () => {
    expect((await files(JSON.parse(stdin), "--cluster-cidr", "10.144.0.0/16")).err).toBe("");
  });
});
