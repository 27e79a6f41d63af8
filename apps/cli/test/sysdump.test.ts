import { randomBytes } from "node:crypto";
import { readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { buffer } from "node:stream/consumers";
import { gzipSync } from "node:zlib";
import { goldenScenario } from "@fairlead/testkit";
import { collectionOf } from "@fairlead/testkit/api-server";
import { type Header, pack } from "tar-stream";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { nodeFiles } from "../src/commands/sysdump-nodes.ts";
import { ArchiveWriter, readArchive } from "../src/sysdump/archive.ts";
import { fileOf, ownFolder } from "./support/files.ts";
import { SECRETS } from "./support/full-objects.ts";
import { AGENT_POD, NodeCluster } from "./support/node-cluster.ts";
import { addresses, nodePrograms } from "./support/recorded.ts";
import { fairlead as run } from "./support/run.ts";

const scenario = goldenScenario("09-loadbalancer");
const cluster = new NodeCluster();
const fairlead = (
  argv: readonly string[],
  env: Readonly<Record<string, string>> = { KUBECONFIG: cluster.kubeconfig },
) => run(argv, { env });
const folder = ownFolder();
let count = 0;
/** What the agents' pods wrote. */
let log = "";

const CONFIGURATION = {
  apiVersion: "kubeproxy.config.k8s.io/v1alpha1",
  kind: "KubeProxyConfiguration",
  mode: "iptables",
  clusterCIDR: "10.144.0.0/16",
};
const PAGES = {
  "/proxyMode": "iptables",
  "/configz": { "kubeproxy.config.k8s.io": CONFIGURATION },
  "/metrics": "kubeproxy_sync_proxy_rules_last_timestamp_seconds 1\n",
  "/ownership": { services: [] },
  "/livez": "ok",
};

beforeAll(async () => {
  await cluster.start();
  cluster.api.put(scenario.objects);
  for (const [name, address] of [
    ["node-a", "10.201.0.10"],
    ["node-z", "10.201.0.26"],
  ]) {
    const status = { addresses: [{ type: "InternalIP", address }] };
    cluster.api.store.put("/api/v1/nodes", { apiVersion: "v1", kind: "Node", metadata: { name }, status });
  }
  cluster.api.answerInstead = ({ path }, response) => {
    if (!/^\/api\/v1\/namespaces\/kube-system\/pods\/[^/]+\/log$/.test(path)) return false;
    response.end(log);
    return true;
  };
});
afterAll(() => cluster.stop());
beforeEach(() => {
  log = "I1123 started\n";
  setNode({}, PAGES);
});

function setNode(programs: Readonly<Record<string, string>>, endpoint: Readonly<Record<string, unknown>>): void {
  const own = {
    ...nodePrograms(scenario.iptables),
    "cat /proc/sys/net/netfilter/nf_conntrack_tcp_be_liberal": "0\n",
    ...programs,
  };
  cluster.set({ pods: [AGENT_POD], programs: own, endpoint });
}

async function dumped(...more: readonly string[]) {
  count += 1;
  const file = join(folder, `dump-${count}.tar.gz`);
  // A busy machine takes longer than a node may take by default.
  const result = await fairlead(["sysdump", "--output-file", file, "--node-timeout", "600", ...more]);
  if (result.code > 1) throw new Error(result.err);
  return { ...result, file, files: await readArchive(file, await readFile(file)) };
}

test.each([
  ["explain", ["explain", "lb"]],
  ["explain, by an address, as JSON", ["explain", "203.0.113.9:80", "-o", "json"]],
  ["verify", ["verify", "-o", "json"]],
])("%s says the same of an archive, on a machine without a cluster", async (_what, command) => {
  const live = await fairlead([...command, "--on", "node-a"]);
  const { file } = await dumped();
  const later = await fairlead([...command, "--sysdump", file, "--on", "node-a"], {});
  expect(live.out).not.toBe("");
  expect(later).toMatchObject({ out: live.out, code: live.code });
});

test.each<[string, object]>([
  ["resetStaleTCP", { resetStaleTCP: true }],
  ["masqueradeToExcluded", { multiCNI: { excludeClusterCIDRs: ["10.244.0.0/16"], masqueradeToExcluded: true } }],
  ["replyVia", { replyVia: [{ interface: "eth1" }], resetStaleTCP: true }],
  ["a value that is wrong", { resetStaleTCP: "often" }],
])("a node is planned from an archive as it is live: %s", async (_what, fairleadConfiguration) => {
  const own = { apiVersion: "fairlead.dev/v1alpha1", kind: "FairleadConfiguration", ...fairleadConfiguration };
  setNode({}, { ...PAGES, "/configz": { "kubeproxy.config.k8s.io": CONFIGURATION, "fairlead.dev": own } });
  const { file } = await dumped();
  for (const command of [
    ["verify", "-o", "json"],
    ["explain", "lb", "-o", "json"],
  ]) {
    const live = await fairlead([...command, "--on", "node-a"]);
    expect(await fairlead([...command, "--sysdump", file], {})).toMatchObject({ out: live.out, code: live.code });
  }
});

test("a proxy that does not serve its configuration: what the options said is in the archive", async () => {
  setNode({}, {});
  const said = ["--mode", "iptables", "--cluster-cidr", "10.144.0.0/16"];
  const live = await fairlead(["explain", "lb", "--on", "node-a", ...said]);
  const { file } = await dumped(...said);
  expect(await fairlead(["explain", "lb", "--sysdump", file], {})).toMatchObject({ out: live.out, code: 0 });
});

test("without /proxyMode the mode is that of the configuration", async () => {
  const { "/proxyMode": _mode, ...pages } = PAGES;
  setNode({}, { ...pages, "/configz": { "kubeproxy.config.k8s.io": { ...CONFIGURATION, mode: "nftables" } } });
  const { file } = await dumped();
  const { err } = await fairlead(["explain", "lb", "--sysdump", file], {});
  expect(err).toContain("configuration: the proxy on this host, nftables mode");
});

test("without a configuration nothing is assumed", async () => {
  setNode({}, {});
  const { file, files } = await dumped();
  const { err, code } = await fairlead(["verify", "--sysdump", file], {});
  expect(err).toContain("the configuration of the proxy is not known: the archive has no /configz of node-a");
  expect(code).toBe(3);
  expect(files.has("nodes/node-a/verify.json")).toBe(false);
});

test("an archive of an earlier version is refused by its format", async () => {
  const archive = new ArchiveWriter("old", new Date(0), 1_000_000);
  const file = fileOf(await archive.end({ "index.json": '{"format":1,"version":"0.9.0","nodes":[]}' }), "old.tar.gz");
  const { err, code } = await fairlead(["verify", "--sysdump", file], {});
  expect(err).toContain("archive format 1 is not supported (supported: 2); read it with fairlead 0.9.0");
  expect(code).toBe(3);
});

test("what differs on the node differs in the archive", async () => {
  setNode({ "iptables-nft-save": scenario.iptables.replace(/^-A KUBE-SERVICES -d 203.*\n/m, "") }, PAGES);
  const live = await fairlead(["verify", "--on", "node-a"]);
  const { file, files } = await dumped();
  expect(live.code).toBe(1);
  expect(await fairlead(["verify", "--sysdump", file], {})).toMatchObject({ out: live.out, code: 1 });
  expect(files.get("nodes/node-a/verify.json")).toContain("KUBE-SERVICES");
  const all = await fairlead(["verify", "--all-nodes", "--sysdump", file], {});
  const verdict = live.out.indexOf("FAIL: 1 service differs; next: ");
  expect(all.out.startsWith(`node-a: ${live.out.slice(0, verdict)}FAIL: 1 of 1 node differs; next: `)).toBe(true);
  expect(all.code).toBe(1);
});

test("trace goes the way of the archive's rules", async () => {
  const { file } = await dumped();
  const argv = ["trace", "--from", "198.51.100.7", "--to", "203.0.113.9:80", "--sysdump", file];
  expect((await fairlead(argv, {})).out).toContain("→ 10.144.");
});

test("nodes that do not answer are named, in the archive and by exit code 1", async () => {
  const { code, out, files } = await dumped();
  expect(code).toBe(1);
  expect(out).toMatch(/: [\d.]+ KiB, 1 of \d+ nodes answered \(not .*node-z\)/);
  expect(out).toMatch(/, \d+ parts missing \(README\.md in it says why\);/);
  expect(files.get("README.md")).toMatch(/^- node-z: agent: no agent runs there$/m);
});

test("the file is its owner's, and none is overwritten", async () => {
  const { file } = await dumped();
  expect((await stat(file)).mode & 0o777).toBe(0o600);
  cluster.api.requests.length = 0;
  expect(await fairlead(["sysdump", "--output-file", file])).toMatchObject({ code: 3 });
  const nowhere = "/does/not/exist/x.tar.gz";
  const { code, err } = await fairlead(["sysdump", "--output-file", nowhere]);
  expect(err).toBe(`--output-file=${nowhere}: no such file or folder\n`);
  expect(code).toBe(3);
  expect(cluster.api.requests, "nothing was asked for").toEqual([]);
});

test("a node that there is not is refused, as by other commands", async () => {
  const { code, err } = await fairlead(["sysdump", "--on", "node-q", "--output-file", join(folder, "none.tar.gz")]);
  expect(err).toMatch(/^--on=node-q: there is no such Node; there are: .*node-a/m);
  expect(code).toBe(3);
});

test("a node of which the archive has nothing is named", async () => {
  const { file } = await dumped();
  const { code, err } = await fairlead(["explain", "lb", "--sysdump", file, "--on", "node-z"], {});
  expect(err).toContain("--on=node-z: the archive has nothing of that node; there are: node-a");
  expect(code).toBe(2);
});

test.each([["--live"], ["-f", "x.yaml"], ["--rules", "x"], ["--kubeconfig", "x"]])(
  "%s names another source",
  async (...more) => {
    const { code } = await fairlead(["explain", "lb", "--sysdump", "x.tar.gz", ...more], {});
    expect(code).toBe(2);
  },
);

test.each([
  ["README.md of this test", __filename],
  ["nothing", "/nowhere/x.tar.gz"],
])("%s is not an archive", async (_what, file) => {
  const { code, err } = await fairlead(["explain", "lb", "--sysdump", file], {});
  expect(err).toContain(`--sysdump=${file}: `);
  expect(code).toBe(3);
});

test.each(SECRETS)("a secret that is in all that is read is nowhere in the archive: %s", async (secret) => {
  const before = cluster.api.store.list("/api/v1/services");
  const labels = { token: secret, "k8s-app": secret };
  const annotations = {
    "kubectl.kubernetes.io/last-applied-configuration": `{"env":"${secret}"}`,
    "fairlead.dev/ownership": secret,
  };
  const metadata = { name: "planted", namespace: "default", labels, annotations };
  const spec = { clusterIP: "10.96.9.9", ports: [{ port: 80, appProtocol: secret }], selector: { app: secret } };
  const objects = [
    { kind: "Service", apiVersion: "v1", metadata, spec },
    {
      kind: "Node",
      apiVersion: "v1",
      metadata: { name: "node-z", labels, annotations },
      status: { nodeInfo: { osImage: secret } },
    },
    {
      kind: "EndpointSlice",
      apiVersion: "discovery.k8s.io/v1",
      metadata: { ...metadata, name: "planted-1" },
      addressType: "IPv4",
      endpoints: [{ addresses: ["10.144.9.9"], hostname: secret, deprecatedTopology: { a: secret } }],
      ports: [],
    },
    {
      kind: "ConfigMap",
      apiVersion: "v1",
      metadata: { ...metadata, name: "fairlead-networks", namespace: "kube-system" },
      data: { accepted: secret, other: secret },
    },
  ];
  const pathOf = (object: { readonly kind: string }) =>
    object.kind === "ConfigMap" ? "/api/v1/configmaps" : collectionOf(object);
  for (const object of objects) cluster.api.store.put(pathOf(object), object);
  log = `I1123 Authorization: Bearer ${secret}\npassword="${secret}" token: ${secret}\n`;
  setNode(
    {
      "iptables-nft-save": `${scenario.iptables}\n*raw\n:X - [0:0]\n-A X -m comment --comment "${secret}" -j ACCEPT\nCOMMIT\n`,
      "fairlead __tables ip": JSON.stringify([{ family: "ip", name: "mine", comment: secret, chains: [], sets: [] }]),
      "ipset save": `create X hash:ip comment\nadd X 10.0.0.1 comment "${secret}"\n`,
      "ip -json address": JSON.stringify([
        ...JSON.parse(addresses),
        { ifname: "eth1", ifalias: secret, addr_info: [] },
      ]),
      "cat /proc/timer_list": `${secret}\n`,
    },
    {
      ...PAGES,
      "/configz": {
        "kubeproxy.config.k8s.io": { ...CONFIGURATION, clientConnection: { kubeconfig: secret } },
        commandLine: { master: secret },
      },
      "/metrics": `fairlead_x{a="token=${secret}"} 1\nother{a="${secret}"} 1\n`,
      "/ownership": {
        services: [{ service: "default/planted", why: `fairlead.dev/ownership is "${secret}"` }],
        token: secret,
      },
      "/livez": `token=${secret}`,
    },
  );
  const { files } = await dumped();
  expect(files.size).toBeGreaterThan(10);
  for (const [path, content] of files) expect(`${path}: ${content}`).not.toContain(secret);
  for (const object of objects.slice(0, 1)) cluster.api.store.delete(collectionOf(object), "default/planted");
  expect(cluster.api.store.list("/api/v1/services")).toEqual(before);
});

test("an archive is never larger than it may be, and what does not fit is known", async () => {
  const archive = new ArchiveWriter("dump", new Date(0), 20_000);
  const large = randomBytes(12_000).toString("hex");
  expect(await archive.add("a.txt", large)).toBe(true);
  expect(await archive.add("b.txt", large)).toBe(false);
  expect(await archive.add("c.txt", "small")).toBe(true);
  const bytes = await archive.end({ "README.md": "read me" });
  expect(bytes.length).toBeLessThan(21_000);
  expect([...(await readArchive("x", bytes))]).toEqual([
    ["README.md", "read me"],
    ["a.txt", large],
    ["c.txt", "small"],
  ]);
});

test("a node that does not answer in time is missing in parts, not as a whole", async () => {
  const late = new AbortController();
  const never = new Promise<never>(() => {});
  const found = nodeFiles(
    {
      name: "node-a",
      state: () => never,
      page: async (path) => (path === "/proxyMode" ? "nftables" : never),
      log: async (previous) => (previous ? "" : "a line\n"),
    },
    late.signal,
  );
  setImmediate(() => late.abort());
  const { files, missing } = await found;
  expect([...files.keys()].sort()).toEqual(["nodes/node-a/agent/proxyMode.txt", "nodes/node-a/log.txt"]);
  const why = "no answer in time";
  expect(missing).toContainEqual({ what: "kernel", why });
  expect(missing).toContainEqual({ what: "agent /metrics", why });
});

type Entries = (readonly [Partial<Header> & Pick<Header, "name">, string?])[];

describe("an archive that is made to do harm", () => {
  const LIMITS = { bytes: 1 << 20, entries: 20 };
  const tar = (...entries: Entries) => {
    const packed = pack();
    for (const [header, content] of entries) packed.entry(header, content ?? "");
    packed.finalize();
    return buffer(packed);
  };
  const archive = async (...entries: Entries) => gzipSync(await tar(...entries));
  const INDEX: Entries[number] = [{ name: "dump/index.json" }, "{}"];
  const read = (bytes: Uint8Array) => readArchive("x.tar.gz", bytes, LIMITS);

  test.each([
    ["a bomb", async () => gzipSync(Buffer.alloc(64 << 20)), /unpacks to more than 1048576 bytes/],
    [
      "a bomb of many members",
      async () => Buffer.concat(Array(64).fill(gzipSync(Buffer.alloc(1 << 19)))),
      /unpacks to/,
    ],
    ["a file that is larger than all", () => archive([{ name: "dump/a" }, "x".repeat(2 << 20)]), /unpacks to more/],
    [
      "more entries than a cluster has",
      () => archive(...Array.from({ length: 21 }, (_, at) => [{ name: `dump/${at}` }] as const)),
      /more than 20 entries/,
    ],
    ["a file twice", () => archive(INDEX, INDEX), /has index.json twice/],
    ["cut off", async () => (await archive(INDEX)).subarray(0, 60), /unexpected end/i],
    ["a tar that is cut off", async () => gzipSync((await tar(INDEX)).subarray(0, 513)), /end of data/i],
    ["no tar", async () => gzipSync(randomBytes(2_048)), /not an archive/],
    ["no gzip", async () => Buffer.from("<html>"), /incorrect header check/],
  ])("%s: refused, and said why", async (_, bytes, why) => {
    await expect(read(await bytes())).rejects.toThrow(why);
  });

  test("links and devices are passed over: only what the archive itself holds is read", async () => {
    const bytes = await archive(
      [{ name: "dump/objects.json", type: "symlink", linkname: "/etc/passwd" }],
      [{ name: "dump/README.md", type: "link", linkname: "/etc/passwd" }],
      [{ name: "dump/nodes/a/state.json", type: "character-device", devmajor: 1, devminor: 5 }],
      INDEX,
    );
    expect([...(await read(bytes))]).toEqual([["index.json", "{}"]]);
  });

  test("a name that leads out of the folder is a name: nothing is written anywhere", async () => {
    const files = await read(await archive([{ name: "dump/../../index.json" }, "out"], INDEX));
    expect(files.get("index.json")).toBe("{}");
  });
});
