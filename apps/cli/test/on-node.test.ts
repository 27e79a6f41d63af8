import { goldenScenario, node as nodeObject } from "@fairlead/testkit";
import { fail } from "@fairlead/testkit/api-server";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { fileOf } from "./support/files.ts";
import { allRights, NodeCluster, type NodesState } from "./support/node-cluster.ts";
import { nodePrograms } from "./support/recorded.ts";
import { fairlead as run } from "./support/run.ts";

const scenario = goldenScenario("09-loadbalancer");
const AGENT = ["-f", "-", "--cluster-cidr", "10.144.0.0/16", "-o", "json"];
const cluster = new NodeCluster();
const fairlead = (argv: readonly string[], options: Parameters<typeof run>[1] = {}) =>
  run(argv, { ...options, env: { KUBECONFIG: cluster.kubeconfig } });
const stdin = { stdin: JSON.stringify(scenario.objects) };
const ROW = {
  service: "default/nginx-ovn",
  ipFamily: "IPv4",
  ownership: "foreign",
  why: "it has no endpoints; when it last had endpoints, it was foreign",
  decidingCIDRs: [],
  ownEndpoints: 0,
  excludedEndpoints: 0,
  frontends: "none",
};

beforeAll(() => cluster.start());
afterAll(() => cluster.stop());

const EDGE = ["--service-proxy-name", "edge"] as const;

interface NodeState {
  /** With a pod of the agent `edge` alongside the first one's. */
  readonly edge?: boolean;
  readonly labels?: Readonly<Record<string, string>>;
  readonly rules?: string;
  readonly rulesOfIPv6?: string;
  readonly endpoint?: Record<string, unknown>;
  readonly synced?: NodesState["programs"];
}

function node(state: NodeState = {}): void {
  const name = "app.kubernetes.io/name";
  const { labels = { [name]: "fairlead" }, rules = scenario.iptables, endpoint = {}, synced } = state;
  const edge = { [name]: "fairlead", "fairlead.dev/service-proxy-name": "edge" };
  const pods = [
    // The API server lists them by name.
    ...(state.edge === true
      ? [{ node: "node-a", name: "fairlead-edge-9d4kx", labels: edge, container: "fairlead" }]
      : []),
    { node: "node-a", name: "fairlead-x7k2p", labels, container: "fairlead" },
  ];
  const programs = { ...nodePrograms(rules), "ip6tables-nft-save": state.rulesOfIPv6 ?? "" };
  cluster.set({ pods, programs, endpoint, ...(synced && { synced }) });
}

describe("--on NODE", () => {
  test("explain asks the kernel through the agent's pod", async () => {
    node();
    const { code, out } = await fairlead(["explain", "lb", "--on", "node-a", ...AGENT], stdin);
    expect(code).toBe(0);
    expect(JSON.parse(out)).toMatchObject({ node: "node-a", kernel: [{ family: "IPv4", disagreements: [] }] });
    expect(cluster.execs.length).toBeGreaterThan(0);
    for (const exec of cluster.execs) expect(exec).toMatchObject({ pod: "fairlead-x7k2p", container: "fairlead" });
  });

  test.each([
    ["the node's first proxy", [], "fairlead-x7k2p", 10249],
    ["the agent with the name", EDGE, "fairlead-edge-9d4kx", 10349],
  ])("of two agents %s is asked", async (_what, args, pod, port) => {
    node({ edge: true, endpoint: { "/ownership": { services: [ROW] } } });
    expect((await fairlead(["ownership", "--on", "node-a", ...args])).code).toBe(0);
    expect(cluster.connections).toEqual([{ pod, port }]);
  });

  test("a node without the agent of that name is exit 3", async () => {
    node();
    const { code, err } = await fairlead(["ownership", "--on", "node-a", ...EDGE]);
    expect(err).toMatch(/no agent runs there \(no running pod with fairlead\.dev\/service-proxy-name=edge\)/);
    expect(code).toBe(3);
  });

  test("a kernel that does something else is exit 1", async () => {
    node({ rules: scenario.iptables.replace(/^-A KUBE-SERVICES -d 203.*\n/m, "") });
    const { code } = await fairlead(["explain", "lb", "--on", "node-a", ...AGENT], stdin);
    expect(code).toBe(1);
  });

  test("ownership reports what the agent has learned", async () => {
    const sources = [{ source: "kube-ovn-subnets", side: "excluded", state: "listed" }];
    const cidrs = [{ cidr: "10.244.0.0/16", side: "excluded", source: "kube-ovn-subnets", objects: [], stage: "held" }];
    const networks = { sources, cidrs, conflicts: [] };
    node({ endpoint: { "/ownership": { services: [ROW], networks } } });
    const { out } = await fairlead(["ownership", "--on", "node-a", "-o", "json"]);
    expect(JSON.parse(out).networks).toEqual(networks);
    node({ endpoint: { "/ownership": { services: [ROW], networks: { ...networks, cidrs: [{}] } } } });
    expect((await fairlead(["ownership", "--on", "node-a"])).err).toContain("is not what this version");
  });

  test("ownership asks the running agent through the API server", async () => {
    node({ labels: { "k8s-app": "kube-proxy" }, endpoint: { "/ownership": { services: [ROW] } } });
    const { code, out } = await fairlead(["ownership", "--on", "node-a", "-o", "json"]);
    expect(code).toBe(0);
    expect(JSON.parse(out).services).toEqual([ROW]);
    expect(cluster.connections).toEqual([{ pod: "fairlead-x7k2p", port: 10249 }]);
  });

  test.each([
    ["a node without an agent", ["--on", "node-b"], /--on=node-b: no agent runs there/],
    ["an agent that does not know the path", ["--on", "node-a"], /answers 404/],
  ])("%s is exit 3", async (_what, args, message) => {
    node();
    const { code, err } = await fairlead(["ownership", ...args]);
    expect(err).toMatch(message);
    expect(code).toBe(3);
  });

  test("what the API server refuses is said in its words, once", async () => {
    node();
    cluster.api.answerInstead = ({ path }, response) => {
      if (!path.endsWith("/pods")) return false;
      fail(response, 403, "Forbidden", 'pods is forbidden: User "eve" cannot list resource "pods"');
      return true;
    };
    for (const command of [["trace", "--to", "10.0.0.1:80"], ["ownership"], ["verify"]]) {
      const { err, code } = await fairlead([...command, "--on", "node-a"]);
      expect(err).toMatch(/^the API server http:\S+ answers 403: pods is forbidden: User "eve" cannot list .*\n$/);
      expect(code).toBe(3);
    }
    cluster.api.answerInstead = () => false;
  });

  test("an answer that is not an agent's is reported, not shown", async () => {
    node({ endpoint: { "/ownership": { services: [{ service: 1 }] } } });
    const { code, err } = await fairlead(["ownership", "--on", "node-a"]);
    expect(err).toMatch(/not what this version of fairlead knows/);
    expect(code).toBe(3);
  });
});

test("doctor looks at the node, not at this host", async () => {
  node();
  const { out } = await fairlead(["doctor", "--on", "node-a", "-o", "json"]);
  const found: readonly { readonly check: string; readonly state: string; readonly found: string }[] = JSON.parse(out);
  expect(found.find(({ check }) => check === "iptables")).toMatchObject({ state: "good", found: "nft variant" });
  const execs = cluster.execs.map(({ argv }) => argv);
  expect(execs).toContainEqual(["cat", "/proc/sys/net/ipv4/ip_forward"]);
  // From here it is unknown whether that process runs there: removing the rule could hit another program.
  expect(execs.flat()).not.toContain("raw");
});

test("doctor on a host that is not a Node says so, with the flag that looks at one", async () => {
  node();
  cluster.api.store.put("/api/v1/nodes", nodeObject("node-a", { addresses: ["10.201.0.10"] }));
  onTestFinished(() => {
    cluster.api.store.delete("/api/v1/nodes", "node-a");
    cluster.api.answerInstead = () => false;
  });
  const at = (address: string) => ({
    stateHere: async () => ({
      addresses: [{ family: "IPv4" as const, interface: "eth0", address, prefixLength: 24, scope: "global", up: true }],
      problems: {},
    }),
  });
  cluster.api.answerInstead = allRights;
  const said =
    "this host is not a Node of the cluster, and what follows is about this host: give --on NODE; there are: node-a";
  expect((await fairlead(["doctor"], at("192.0.2.7"))).err).toContain(said);
  expect((await fairlead(["doctor"], at("10.201.0.10"))).err).not.toContain("this host is not a Node");
});

describe("verify --on NODE --repair", () => {
  const agent = ["-f", "-", "--cluster-cidr", "10.144.0.0/16"];
  /** What a node lists that holds its plan: new rules stand where they were inserted. */
  const listed = async (family: string) => {
    const options = ["--node", "node-a", "--node-address", "10.201.0.10", "--family", family];
    const { out } = await fairlead(["plan", ...agent, ...options], stdin);
    const builtIn = { nat: ["PREROUTING", "OUTPUT", "POSTROUTING"], filter: ["INPUT", "FORWARD", "OUTPUT"] };
    return out
      .replaceAll(/^-I (\S+) \d+ /gm, "-A $1 ")
      .replaceAll(/^\*(nat|filter)$/gm, (table, name: keyof typeof builtIn) =>
        [table, ...builtIn[name].map((chain) => `:${chain} ACCEPT [0:0]`)].join("\n"),
      );
  };
  const repair = () => fairlead(["verify", ...agent, "--on", "node-a", "--repair"], stdin);

  test("notifies the agent in its pod, and looks at that kernel again", async () => {
    const [rules, rulesOfIPv6] = [await listed("ipv4"), await listed("ipv6")];
    const damaged = rules.replace(/^-A KUBE-SERVICES -d 203.*\n/m, "");
    expect(damaged).not.toBe(rules);
    node({ rules: damaged, rulesOfIPv6, synced: { "iptables-nft-save": rules } });
    expect(await repair()).toMatchObject({ code: 0, out: "OK: nothing differs (IPv4, IPv6)\n" });
    const asked = cluster.execs.filter(({ argv }) => argv.at(-1) === "__full-sync");
    expect(asked).toMatchObject([{ pod: "fairlead-x7k2p" }]);
  });

  test("kube-proxy cannot be notified, and nothing else is done", async () => {
    node({ labels: { "k8s-app": "kube-proxy" }, rules: "" });
    const { err, code } = await repair();
    expect(err).toMatch(
      /^the agent of that node cannot be asked, it takes Fairlead's image: .*executable file not found/m,
    );
    expect(code).toBe(3);
  });
});

describe("all nodes", () => {
  const nodes = ["node-a", "node-b"].map((name) => nodeObject(name, { addresses: ["10.201.0.10"] }));
  const manifests = (file: string) => ["-f", file, "--cluster-cidr", "10.144.0.0/16", "--context", "production"];
  const pages = {
    "/metrics": 'fairlead_build_info{version="1.4.0"} 1\n',
    "/proxyMode": "iptables",
    "/livez": { healthy: true },
    "/ownership": { services: [ROW, { ...ROW, ownership: "ours" }] },
  };

  function manifestsOf(state: Parameters<typeof node>[0] = {}): string {
    node({ endpoint: pages, ...state });
    return fileOf([...scenario.objects, ...nodes], "cluster.json");
  }

  test("status: a row a node, one without an agent among them", async () => {
    const { out, code } = await fairlead(["status", ...manifests(manifestsOf())]);
    expect(out).toBe(
      `NODE     MODE       VERSION   HEALTHY     LAST SYNC   OWNERS              DIFFERS
node-a   iptables   v1.4.0    yes         -           1 ours, 1 foreign   -
node-b   -          -         no answer   -           -                   -
FAIL: 1 of 2 nodes (node-b); next: fairlead status -o wide gives reasons, fairlead doctor --on NODE looks at one
`,
    );
    expect(code).toBe(1);
  });

  test("status of the agents with a name says it", async () => {
    const named = 'fairlead_build_info{version="1.4.0",service_proxy_name="edge"} 1\n';
    const file = manifestsOf({ edge: true, endpoint: { ...pages, "/metrics": named, "/proxyMode": "nftables" } });
    const { out } = await fairlead(["status", ...manifests(file), ...EDGE, "--on", "node-a"]);
    expect(out).toMatch(/^node-a +nftables \(edge\) +v1\.4\.0 +yes /m);
    expect(new Set(cluster.connections.map(({ pod }) => pod))).toEqual(new Set(["fairlead-edge-9d4kx"]));
  });

  const damaged = { rules: scenario.iptables.replace(/^-A KUBE-SERVICES -d 203.*\n/m, "") };

  test("diff cluster node plans the node whose kernel it compares", async () => {
    node();
    const itself = { apiVersion: "v1", kind: "Node", metadata: { name: "node-a" } };
    const objects = fileOf([...scenario.objects, itself], "objects.json");
    const agent = ["--cluster-cidr", "10.144.0.0/16", "--node-address", "10.201.0.10"];
    const { code, err } = await fairlead(["diff", objects, "node", "--on", "node-a", "--traffic-only", ...agent]);
    expect(err).not.toContain("give --node");
    expect(code).toBe(0);
  });

  test("status --verify of one node: a frontend is missing, which is one difference", async () => {
    const args = [...manifests(manifestsOf(damaged)), "--on", "node-a", "--verify", "-o", "json"];
    const { out, err, code } = await fairlead(["status", ...args]);
    expect(err).toMatch(/^configuration of node-a: as the options say; not compared: .*\n$/);
    expect(code).toBe(1);
    expect(JSON.parse(out)).toMatchObject([{ node: "node-a", answers: true, healthy: true, differences: 1 }]);
    const well = await fairlead(["status", ...manifests(manifestsOf()), "--on", "node-a"]);
    expect(well).toMatchObject({ code: 0, err: "" });
  });

  test("status: an agent that is not healthy, and a node that there is not", async () => {
    const sick = { endpoint: { ...pages, "/livez": { healthy: false } } };
    const { out, code } = await fairlead(["status", ...manifests(manifestsOf(sick)), "--on", "node-a"]);
    expect(out).toMatch(/^node-a +iptables +v1\.4\.0 +no /m);
    expect(code).toBe(1);
    const unknown = await fairlead(["status", ...manifests(manifestsOf()), "--on", "node-c"]);
    expect(unknown.err).toMatch(/^--on=node-c: there is no such Node; there are: node-a, node-b; did you mean node-a/);
    expect(unknown.code).toBe(3);
  });

  test("verify --all-nodes: what differs by node; one that cannot be looked at is reported as well", async () => {
    const args = manifests(manifestsOf(damaged));
    const { out, code } = await fairlead(["verify", "--all-nodes", ...args]);
    expect(out).toMatch(/^node-a: default\/lb IPv4: different\n {2}- nat KUBE-SERVICES/m);
    expect(out).toMatch(/^node-b: not looked at: no agent runs there$/m);
    expect(code).toBe(1);
    const json = await fairlead(["verify", "--all-nodes", "-o", "json", ...manifests(manifestsOf())]);
    expect(JSON.parse(json.out)).toMatchObject([
      // Nothing serves IPv6 there, and nothing of it is programmed: that is not a difference.
      { node: "node-a", families: [{ family: "IPv4", services: [] }] },
      { node: "node-b", problem: "no agent runs there" },
    ]);
  });

  test("verify --all-nodes is not asked about one", async () => {
    const { code, err } = await fairlead(["verify", "--all-nodes", "--on", "node-a"]);
    expect(err).toMatch(/^--all-nodes: leave out --node, --on, --live, --rules and --repair\n/);
    expect(code).toBe(2);
  });
});
