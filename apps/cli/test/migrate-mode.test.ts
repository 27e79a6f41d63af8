import { goldenScenario } from "@fairlead/testkit";
import { afterEach, describe, expect, test } from "vitest";
import { countersIn } from "../src/commands/migrate/to-mode.ts";
import { fileOf } from "./support/files.ts";
import { type MigratedCluster, scenarioCluster, stopClusters } from "./support/kubeadm-cluster.ts";
import { addresses, nodePrograms } from "./support/recorded.ts";
import { programs, fairlead as run } from "./support/run.ts";

const NOW = ["--skip-verify", "--hold", "0", "--timeout", "0"];
const TO = ["--to-mode", "nftables"];
const fairlead = (argv: readonly string[], cluster: MigratedCluster) =>
  run(argv, { env: { KUBECONFIG: cluster.kubeconfig } });

const scenario = goldenScenario("09-loadbalancer");
const stdin = JSON.stringify(scenario.objects);
const AGENT = ["--cluster-cidr", "10.144.0.0/16,fd00:144::/48", "--node-address", "10.201.0.10"];
/** With an external traffic policy Local, which ipvs mode has no short cut for. */
const local = JSON.stringify(goldenScenario("11-lb-local-healthcheck").objects);
const LOCAL = "default/lbl";

afterEach(stopClusters);

interface Finding {
  readonly topic: string;
  readonly state: string;
  readonly found: string;
  readonly services?: readonly string[];
}

const modeOf = (cluster: MigratedCluster) =>
  cluster
    .objects()
    .filter(({ data }) => data?.["config.conf"] !== undefined)
    .filter(({ metadata }) => metadata.name.startsWith("fairlead-"))
    .map(({ data }) => /^mode: (\w+)$/m.exec(data["config.conf"])?.[1]);

describe("a report on a cluster", () => {
  test("says for its nodes what changes and why, and what --apply would do; it changes nothing", async () => {
    const cluster = await scenarioCluster(["node-a", "node-b"]);
    const { out, err, code } = await fairlead(["migrate", ...TO], cluster);
    expect({ err, code }).toEqual({ err: "", code: 0 });
    expect(out).toMatch(/✓ configuration: mode nftables, clusterCIDR 10\.144\.0\.0\/16/);
    expect(out).toMatch(/^From iptables to nftables mode: \d+ services? changes?$/m);
    expect(out).toMatch(/^node-a, node-b\n/m);
    expect(out).toContain("! node ports on localhost: ");
    expect(out).toMatch(/\? firewall: rules of other programs were not looked at/);
    expect(out).toContain("With --apply:");
    expect(cluster.changes).toEqual([]);
  });

  test("as JSON it has each node with its findings", async () => {
    const cluster = await scenarioCluster(["node-a", "node-b"]);
    const { out } = await fairlead(["migrate", ...TO, "-o", "json", "--node", "node-b"], cluster);
    const { mode } = JSON.parse(out);
    expect(mode).toMatchObject({ from: "iptables", to: "nftables", nodes: [{ node: "node-b" }] });
    const topics = (mode.nodes[0].findings as Finding[]).map(({ topic }) => topic);
    expect(topics).toContain("node ports on localhost");
  });

  test("a node whose kernel is too old is in the way, and nothing is changed", async () => {
    const cluster = await scenarioCluster(["node-a"]);
    const node = cluster.get("Node", "node-a");
    cluster.add({ ...node, status: { ...node.status, nodeInfo: { kernelVersion: "5.4.0-200-generic" } } });
    const { out, code } = await fairlead(["migrate", ...TO, "--apply", ...NOW], cluster);
    expect(out).toContain("✗ kernel: Linux 5.4.0-200-generic\n    → nftables mode needs Linux 5.13");
    expect(code).toBe(1);
    expect(cluster.changes).toEqual([]);
  });
});

describe("a report on a cluster that Fairlead serves by itself", () => {
  test.each([[[]], [["--node", "node-a"]]])("has no need of kube-proxy: %j", async (more) => {
    const cluster = await scenarioCluster(["node-a"]);
    const { spec, ...kubeProxy } = cluster.get("DaemonSet", "kube-proxy");
    cluster.api.store.delete("/apis/apps/v1/daemonsets", `kube-system/${kubeProxy.metadata.name}`);
    const labels = { "app.kubernetes.io/name": "fairlead" };
    cluster.add({
      kind: "Pod",
      metadata: { name: "fairlead-x7k2p", namespace: "kube-system", labels },
      spec: { ...spec.template.spec, nodeName: "node-a" },
      status: { phase: "Running" },
    });
    const { out, err, code } = await fairlead(["migrate", ...TO, ...more], cluster);
    expect(out).toMatch(/^From iptables to nftables mode: \d+ services? changes?$/m);
    expect(out).toMatch(/^node-a\n/m);
    expect(err).toMatch(/^configuration: ConfigMap kube-system\/kube-proxy, iptables mode/m);
    expect(code).toBe(0);
    expect(cluster.changes).toEqual([]);
  });
});

describe("carried out", () => {
  test("nodes get Fairlead in that mode, later runs keep it, and the way back leads through the mode of before", async () => {
    const cluster = await scenarioCluster(["node-a", "node-b"]);
    expect(await fairlead(["migrate", ...TO, "--apply", ...NOW], cluster)).toMatchObject({ err: "", code: 0 });
    expect(modeOf(cluster)).toEqual(["nftables"]);
    const proven = cluster.get("Node", "node-a").metadata.annotations["fairlead.dev/proxy-proven"];
    expect(proven).toBe("fairlead/nftables");
    const before = cluster.changes.length;
    expect(await fairlead(["migrate", "--apply", ...NOW], cluster)).toMatchObject({ code: 0 });
    expect(cluster.changes).toHaveLength(before);

    const installed: string[] = [];
    cluster.refuses = ({ path }) => {
      if (/\/(?:configmaps|daemonsets)\/fairlead/.test(path)) installed.push(...modeOf(cluster).map(String));
      if (path.endsWith("/nodes/node-a")) installed.push("node-a");
      return false;
    };
    const back = await fairlead(["migrate", "--revert", ...NOW], cluster);
    expect(back).toMatchObject({ err: "", code: 0 });
    expect(back.out).toMatch(/Fairlead's objects are written\n[\s\S]*node-a: gets kube-proxy\n/);
    expect(installed.indexOf("node-a")).toBeGreaterThan(0);
    expect(cluster.get("DaemonSet", "fairlead")).toBeUndefined();
    expect(cluster.get("Node", "node-a").metadata.annotations ?? {}).toEqual({});
  });

  test("nodes that Fairlead serves already are given the mode, and proven in it", async () => {
    const cluster = await scenarioCluster(["node-a"]);
    await fairlead(["migrate", "--apply", ...NOW], cluster);
    const { out, code } = await fairlead(["migrate", ...TO, "--apply", ...NOW], cluster);
    expect(out).toMatch(/Fairlead's objects are written\n[\s\S]*node-a: verified with fairlead/);
    expect(code).toBe(0);
    expect(modeOf(cluster)).toContain("nftables");
    const again = await fairlead(["migrate", "--to-mode", "iptables", "-o", "json"], cluster);
    expect(JSON.parse(again.out).mode).toMatchObject({ from: "nftables", to: "iptables" });
  });

  test("before its change a node is held against the mode that kube-proxy is in", async () => {
    const cluster = await scenarioCluster(["node-a"]);
    const verified = ["migrate", ...TO, "--apply", "--hold", "0", "--timeout", "0"];
    const { out, code } = await fairlead(verified, cluster);
    // The rules are kube-proxy's all the time: right before the change, wrong after it.
    expect(out).toMatch(/node-a: verified before its change\nnode-a: gets fairlead\n[\s\S]*Stopped: node-a, served by/);
    expect(out).toMatch(/kube-proxy serves it/);
    expect(code).toBe(1);
  });
});

describe("a report on manifests", () => {
  const report = (objects: string, ...more: readonly string[]) =>
    run(["migrate", ...TO, "-f", "-", "--node", "node-a", ...AGENT, ...more], { stdin: objects });

  test("needs no cluster", async () => {
    const { out, err, code } = await report(stdin);
    expect({ err, code }).toEqual({ err: "", code: 0 });
    expect(out).toMatch(/^From iptables to nftables mode: /);
    expect(out).not.toContain("With --apply");
  });

  test("from ipvs mode it names schedulers and policies", async () => {
    const { out } = await report(local, "--mode", "ipvs", "-o", "json");
    const { from, nodes } = JSON.parse(out);
    const found: readonly Finding[] = nodes[0].findings;
    expect(from).toBe("ipvs");
    expect(found.find(({ topic }) => topic === "balancing")).toMatchObject({ state: "fits" });
    expect(found.find(({ topic, state }) => topic === "services" && state === "differs")?.services).toContain(LOCAL);
  });

  test("with the rules of the node it says what a firewall will stop", async () => {
    const firewall = (text: string) => text.replace(/(\*filter\n(?::.*\n)*?:FORWARD )\w+/, "$1DROP");
    const about = async (text: string) => {
      const { nodes } = JSON.parse((await report(stdin, "--rules", fileOf(text), "-o", "json")).out);
      return (nodes[0].findings as Finding[]).filter(({ topic }) => topic === "firewall, IPv4");
    };
    expect(await about(scenario.iptables)).toMatchObject([{ state: "fits" }]);
    expect(await about(firewall(scenario.iptables))).toMatchObject([
      { state: "differs", found: expect.stringMatching(/^rules of other programs stop packets/) },
    ]);
  });

  test("--live looks at this host: its addresses without node ports, and rules that lead to kube-proxy's chains", async () => {
    const own = { family: "inet", local: "198.51.100.20", prefixlen: 32, scope: "global" };
    const runner = programs({
      ...nodePrograms(scenario.iptables.replace(/^-A INPUT /m, "-A INPUT -p tcp -j KUBE-NODEPORTS\n$&")),
      "ip -json address": JSON.stringify([...JSON.parse(addresses), { ifname: "lo", flags: ["UP"], addr_info: [own] }]),
    });
    const argv = ["migrate", ...TO, "-f", "-", "--live", "-o", "json", "--node", "node-a"];
    const { out } = await run([...argv, "--cluster-cidr", "10.144.0.0/16"], { stdin, runner });
    const found = (JSON.parse(out).nodes[0].findings as Finding[]).map(
      ({ topic, state, found }) => `${topic} ${state}: ${found}`,
    );
    expect(found).toContainEqual(expect.stringMatching(/^node ports, IPv4 differs: .*no longer at 198\.51\.100\.20/));
    expect(found).toContainEqual(
      expect.stringMatching(/^firewall, IPv4 differs: .*filter INPUT: -p tcp -j KUBE-NODEPORTS/),
    );
  });
});

test.each([
  [["--node", "node-a"], "--node: is only valid with --to-mode, for its report"],
  [["--apply", ...TO, "--live"], "--live: is only valid with --to-mode, for its report"],
  [[...TO, "--mode", "ipvs"], "--mode: is only valid with manifests (-f)"],
  [["--to-mode", "userspace"], "--to-mode=userspace: must be iptables or ipvs or nftables"],
])("migrate %j is a usage error", async (argv, message) => {
  expect(await run(["migrate", ...argv])).toMatchObject({ code: 2, err: expect.stringContaining(message) });
});

test("the counters of kube-proxy's metrics", () => {
  const metrics = [
    "# TYPE kubeproxy_iptables_localhost_nodeports_accepted_packets_total counter",
    "kubeproxy_iptables_localhost_nodeports_accepted_packets_total 12",
    "kubeproxy_iptables_ct_state_invalid_dropped_packets_total 1.5e+06",
  ];
  expect(countersIn(metrics.join("\n"))).toEqual({ localhostPackets: 12, invalidPackets: 1_500_000 });
  expect(countersIn("")).toEqual({});
});

describe("one service, and packets", () => {
  test("explain says what the service is in the other mode, and what changes", async () => {
    const argv = ["explain", LOCAL, "-f", "-", "--node", "node-a", ...AGENT, "--mode", "ipvs", ...TO];
    const { out, code } = await run(argv, { stdin: local });
    expect(out).toMatch(/^default\/\S+ on node-a, nftables mode\n/);
    expect(out).toMatch(/What changes from ipvs mode:\n(?:.*\n)*! services: /);
    expect(code).toBe(0);
  });

  test("diff plans its second side in the other mode", async () => {
    const file = fileOf(local, "objects.json");
    const argv = ["diff", file, file, "--mode", "ipvs", "--node", "node-a", ...AGENT, "--traffic-only"];
    expect((await run(argv)).out).toMatch(/^Traffic: the same/);
    expect((await run([...argv, ...TO])).out).toMatch(/^Traffic that changes /);
  });
});
