import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createRunner } from "@fairlead/kernel";
import { FakeRunner } from "@fairlead/kernel/fake";
import { goldenScenario } from "@fairlead/testkit";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { addresses } from "./support/addresses.ts";
import type { FakeCluster } from "./support/fake-kubectl-main.ts";
import { fairlead } from "./support/run.ts";

const scenario = goldenScenario("09-loadbalancer");
const AGENT = ["-f", "-", "--cluster-cidr", "10.144.0.0/16", "-o", "json"];
/** Processes are started in earnest. */
const real = { runner: createRunner() };
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
let dir = "";
const before = { PATH: process.env["PATH"], FAKE_KUBECTL: process.env["FAKE_KUBECTL"] };

beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), "fairlead-kubectl-"));
  const fake = join(import.meta.dirname, "support", "fake-kubectl-main.ts");
  await writeFile(join(dir, "kubectl"), `#!/bin/sh\nexec '${process.execPath}' '${fake}' "$@"\n`, { mode: 0o755 });
  process.env["PATH"] = `${dir}:${before.PATH}`;
  process.env["FAKE_KUBECTL"] = dir;
});
afterAll(async () => {
  process.env["PATH"] = before.PATH;
  delete process.env["FAKE_KUBECTL"];
  await rm(dir, { recursive: true });
});

const EDGE = ["--service-proxy-name", "edge"] as const;

interface NodeState {
  /** With a pod of the agent `edge` beside the first one's. */
  readonly edge?: boolean;
  readonly label?: string;
  readonly rules?: string;
  readonly rulesOfIPv6?: string;
  readonly endpoint?: Record<string, unknown>;
  readonly synced?: FakeCluster["programs"];
}

async function node(state: NodeState = {}) {
  const { label = "app.kubernetes.io/name=fairlead", rules = scenario.iptables, endpoint = {}, synced } = state;
  await writeFile(join(dir, "calls.jsonl"), "");
  const named = "app.kubernetes.io/name=fairlead,fairlead.dev/service-proxy-name=edge";
  const pods = [
    // The API server lists them by name.
    ...(state.edge === true
      ? [{ node: "node-a", name: "fairlead-edge-9d4kx", label: named, container: "fairlead" }]
      : []),
    { node: "node-a", name: "fairlead-x7k2p", label, container: "fairlead" },
  ];
  const programs = {
    "iptables-nft-save": rules,
    "iptables-nft-save -t mangle": "*mangle\n:KUBE-IPTABLES-HINT - [0:0]\nCOMMIT\n",
    "ip6tables-nft-save": state.rulesOfIPv6 ?? "",
    "iptables --version": "iptables v1.8.9 (nf_tables)\n",
    "ip -json address": addresses,
    ip: "[]",
  };
  const cluster: FakeCluster = { pods, programs, endpoint, ...(synced && { synced }) };
  await writeFile(join(dir, "state.json"), JSON.stringify(cluster));
}

async function calls(): Promise<readonly (readonly string[])[]> {
  const text = await readFile(join(dir, "calls.jsonl"), "utf8");
  return text
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line));
}

describe("--on NODE", () => {
  test("explain asks the kernel through the agent's pod", async () => {
    await node();
    const { code, out } = await fairlead(["explain", "lb", "--on", "node-a", ...AGENT], {
      ...stdin,
      runner: createRunner(),
    });
    expect(code).toBe(0);
    expect(JSON.parse(out)).toMatchObject({ node: "node-a", kernel: [{ family: "IPv4", disagreements: [] }] });
    const execs = (await calls()).filter(([verb]) => verb === "exec");
    expect(execs.length).toBeGreaterThan(0);
    for (const call of execs) {
      expect(call.slice(0, call.indexOf("--"))).toEqual([
        "exec",
        "--stdin",
        "--namespace=kube-system",
        "fairlead-x7k2p",
        "--container=fairlead",
      ]);
    }
  });

  test.each([
    ["the node's first proxy", [], "pod/fairlead-x7k2p", ":10249"],
    ["the agent with the name", EDGE, "pod/fairlead-edge-9d4kx", ":10349"],
  ])("of two agents %s is asked", async (_what, args, pod, port) => {
    await node({ edge: true, endpoint: { "/ownership": { services: [ROW] } } });
    expect((await fairlead(["ownership", "--on", "node-a", ...args], real)).code).toBe(0);
    expect((await calls()).at(-1)?.slice(-2)).toEqual([pod, port]);
  });

  test("a node without the agent of that name is exit 3", async () => {
    await node();
    const { code, err } = await fairlead(["ownership", "--on", "node-a", ...EDGE], real);
    expect(err).toMatch(/no agent runs there \(no running pod with fairlead\.dev\/service-proxy-name=edge\)/);
    expect(code).toBe(3);
  });

  test("a kernel that does something else is exit 1", async () => {
    await node({ rules: scenario.iptables.replace(/^-A KUBE-SERVICES -d 203.*\n/m, "") });
    const { code } = await fairlead(["explain", "lb", "--on", "node-a", ...AGENT], {
      ...stdin,
      runner: createRunner(),
    });
    expect(code).toBe(1);
  });

  test("ownership tells what the agent has learned; one that says nothing of conflicts knows of none", async () => {
    const sources = [{ source: "kube-ovn-subnets", side: "excluded", state: "listed" }];
    const cidrs = [{ cidr: "10.244.0.0/16", side: "excluded", source: "kube-ovn-subnets", objects: [], stage: "held" }];
    const networks = { sources, cidrs, heldBack: 3 };
    await node({ endpoint: { "/ownership": { services: [ROW], networks } } });
    const { out } = await fairlead(["ownership", "--on", "node-a", "-o", "json"], real);
    expect(JSON.parse(out).networks).toEqual({ ...networks, conflicts: [] });
    await node({ endpoint: { "/ownership": { services: [ROW], networks: { sources, cidrs: [{}] } } } });
    expect((await fairlead(["ownership", "--on", "node-a"], real)).err).toContain("is not what this version");
  });

  test("ownership asks the running agent through a port-forward, which ends with it", async () => {
    await node({ label: "k8s-app=kube-proxy", endpoint: { "/ownership": { services: [ROW] } } });
    const { code, out } = await fairlead(["ownership", "--on", "node-a", "-o", "json", "--kubeconfig", "/c/k"], real);
    expect(code).toBe(0);
    expect(JSON.parse(out).services).toEqual([ROW]);
    expect((await calls()).at(-1)).toEqual([
      "--kubeconfig=/c/k",
      "port-forward",
      "--namespace=kube-system",
      "--address=127.0.0.1",
      "pod/fairlead-x7k2p",
      ":10249",
    ]);
  });

  test.each([
    ["a node without an agent", ["--on", "node-b"], /--on=node-b: no agent runs there/],
    ["an agent that does not know the path", ["--on", "node-a"], /answers 404/],
  ])("%s is exit 3", async (_what, args, message) => {
    await node();
    const { code, err } = await fairlead(["ownership", ...args], real);
    expect(err).toMatch(message);
    expect(code).toBe(3);
  });

  test("of kubectl's log nothing is told, and what it says is told once", async () => {
    const log = `E1122 09:03:57.123456   4242 memcache.go:265] "Unhandled Error" err="couldn't get current server API group list"\n`;
    const sentence =
      "The connection to the server localhost:8080 was refused - did you specify the right host or port?";
    const runner = new FakeRunner({ kubectl: { stderr: `${log.repeat(8)}${sentence}\n`, exitCode: 1 } });
    for (const command of [["trace", "--to", "10.0.0.1:80"], ["ownership"], ["explain", "web"], ["verify"]]) {
      const { err, code } = await fairlead([...command, "--on", "node-a"], { runner });
      expect(err).toBe(`kubectl: ${sentence}\n`);
      expect(code).toBe(3);
    }
  });

  test("an answer that is none of ours is told, not shown", async () => {
    await node({ endpoint: { "/ownership": { services: [{ service: 1 }] } } });
    const { code, err } = await fairlead(["ownership", "--on", "node-a"], real);
    expect(err).toMatch(/not what this version of fairlead knows/);
    expect(code).toBe(3);
  });
});

test("doctor looks at the node, not at this host", async () => {
  await node();
  const { out } = await fairlead(["doctor", "--on", "node-a", "-o", "json"], real);
  const found: readonly { readonly check: string; readonly state: string; readonly found: string }[] = JSON.parse(out);
  expect(found.find(({ check }) => check === "iptables")).toMatchObject({ state: "good", found: "nft variant" });
  const execs = (await calls()).flatMap((call) => (call[0] === "exec" ? [call.slice(call.indexOf("--") + 1)] : []));
  expect(execs).toContainEqual(["cat", "/proc/sys/net/ipv4/ip_forward"]);
  // Whether its process runs there cannot be told from here: another's rule would be taken away.
  expect(execs.flat()).not.toContain("raw");
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
  const repair = () => fairlead(["verify", ...agent, "--on", "node-a", "--repair"], { ...real, ...stdin });

  test("has the agent in its pod told, and looks at that kernel again", async () => {
    const [rules, rulesOfIPv6] = [await listed("ipv4"), await listed("ipv6")];
    const damaged = rules.replace(/^-A KUBE-SERVICES -d 203.*\n/m, "");
    expect(damaged).not.toBe(rules);
    await node({ rules: damaged, rulesOfIPv6, synced: { "iptables-nft-save": rules } });
    expect(await repair()).toMatchObject({ err: "", code: 0, out: "nothing differs (IPv4, IPv6)\n" });
    const told = (await calls()).filter((call) => call.at(-1) === "__full-sync");
    expect(told).toHaveLength(1);
    expect(told[0]).toContain("fairlead-x7k2p");
  });

  test("kube-proxy cannot be told, and nothing else is done", async () => {
    await node({ label: "k8s-app=kube-proxy", rules: "" });
    const { err, code } = await repair();
    expect(err).toMatch(/^the agent of that node cannot be asked, it takes Fairlead's image: exec failed: fairlead/m);
    expect(code).toBe(3);
  });
});

describe("all nodes", () => {
  const nodes = ["node-a", "node-b"].map((name) => ({
    apiVersion: "v1",
    kind: "Node",
    metadata: { name },
    status: { addresses: [{ type: "InternalIP", address: "10.201.0.10" }] },
  }));
  const manifests = (file: string) => ["-f", file, "--cluster-cidr", "10.144.0.0/16", "--context", "production"];
  const pages = {
    "/metrics": 'fairlead_build_info{version="1.4.0"} 1\n',
    "/proxyMode": "iptables",
    "/livez": { healthy: true },
    "/ownership": { services: [ROW, { ...ROW, ownership: "ours" }] },
  };

  async function cluster(state: Parameters<typeof node>[0] = {}): Promise<string> {
    await node({ endpoint: pages, ...state });
    const file = join(dir, "cluster.json");
    await writeFile(file, JSON.stringify([...scenario.objects, ...nodes]));
    return file;
  }

  test("status: a row a node, one without an agent among them", async () => {
    const { out, code } = await fairlead(["status", ...manifests(await cluster())], real);
    expect(out).toBe(
      `NODE     MODE       VERSION   HEALTHY     LAST SYNC   OWNERS              DIFFERS
node-a   iptables   v1.4.0    yes         -           1 ours, 1 foreign   -
node-b   -          -         no answer   -           -                   -
`,
    );
    expect(code).toBe(1);
    expect((await calls()).every((call) => call.includes("--context=production"))).toBe(true);
  });

  test("status of the agents with a name says it", async () => {
    const named = 'fairlead_build_info{version="1.4.0",service_proxy_name="edge"} 1\n';
    const file = await cluster({ edge: true, endpoint: { ...pages, "/metrics": named, "/proxyMode": "nftables" } });
    const { out } = await fairlead(["status", ...manifests(file), ...EDGE, "--on", "node-a"], real);
    expect(out).toMatch(/^node-a +nftables \(edge\) +v1\.4\.0 +yes /m);
    expect((await calls()).flat()).toContain("pod/fairlead-edge-9d4kx");
  });

  const damaged = { rules: scenario.iptables.replace(/^-A KUBE-SERVICES -d 203.*\n/m, "") };

  test("status --verify of one node: a frontend is missing, which is one difference", async () => {
    const args = [...manifests(await cluster(damaged)), "--on", "node-a", "--verify", "-o", "json"];
    const { out, err, code } = await fairlead(["status", ...args], real);
    expect({ err, code }).toEqual({ err: "", code: 1 });
    expect(JSON.parse(out)).toMatchObject([{ node: "node-a", answers: true, healthy: true, differences: 1 }]);
    const well = await fairlead(["status", ...manifests(await cluster()), "--on", "node-a"], real);
    expect(well).toMatchObject({ code: 0, err: "" });
  });

  test("status: an agent that is not healthy, and a node that there is not", async () => {
    const sick = { endpoint: { ...pages, "/livez": { healthy: false } } };
    const { out, code } = await fairlead(["status", ...manifests(await cluster(sick)), "--on", "node-a"], real);
    expect(out).toMatch(/^node-a +iptables +v1\.4\.0 +no /m);
    expect(code).toBe(1);
    const unknown = await fairlead(["status", ...manifests(await cluster()), "--on", "node-c"], real);
    expect(unknown.err).toMatch(/^--on=node-c: there is no such Node; there are: node-a, node-b; did you mean node-a/);
    expect(unknown.code).toBe(3);
  });

  test("verify --all-nodes: what differs by node; one that cannot be looked at is told as well", async () => {
    const args = manifests(await cluster(damaged));
    const { out, code } = await fairlead(["verify", "--all-nodes", ...args], real);
    expect(out).toMatch(/^node-a: default\/lb IPv4: different\n {2}- nat KUBE-SERVICES/m);
    expect(out).toMatch(/^node-b: not looked at: no agent runs there$/m);
    expect(code).toBe(1);
    const json = await fairlead(["verify", "--all-nodes", "-o", "json", ...manifests(await cluster())], real);
    expect(JSON.parse(json.out)).toMatchObject([
      // Nothing serves IPv6 there, and nothing of it is programmed: that is no difference.
      { node: "node-a", families: [{ family: "IPv4", services: [] }] },
      { node: "node-b", problem: "no agent runs there" },
    ]);
  });

  test("verify --all-nodes is not asked about one", async () => {
    const { code, err } = await fairlead(["verify", "--all-nodes", "--on", "node-a"], real);
    expect(err).toMatch(/^--all-nodes: leave out --node, --on, --live, --rules and --repair\n/);
    expect(code).toBe(2);
  });
});
