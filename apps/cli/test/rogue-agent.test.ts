/**
 * A pod that answers in the agent's place, and `--as`: nothing that it says reaches the terminal, a file or another
 * user's rights.
 */

import { join } from "node:path";
import { goldenScenario } from "@fairlead/testkit";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { fileOf, ownFolder } from "./support/files.ts";
import { AGENT_POD, NodeCluster } from "./support/node-cluster.ts";
import { addresses } from "./support/recorded.ts";
import { fairlead } from "./support/run.ts";

const scenario = goldenScenario("09-loadbalancer");
const cluster = new NodeCluster();
let objects = "";

beforeAll(async () => {
  await cluster.start();
  cluster.api.store.put("/api/v1/nodes", { metadata: { name: "node-a" } });
  const node = { apiVersion: "v1", kind: "Node", metadata: { name: "node-a" } };
  objects = fileOf([...scenario.objects, node], "objects.json");
});
afterAll(() => cluster.stop());

function rogue(endpoint: Readonly<Record<string, unknown>>, programs: Readonly<Record<string, string>> = {}): void {
  cluster.set({
    pods: [AGENT_POD],
    programs: { "iptables-nft-save": scenario.iptables, "ip -json address": addresses, ip: "[]", ...programs },
    endpoint,
  });
}

const COMMANDS: readonly [string, ...string[]][] = [
  ["status", "--on", "node-a", "--verify"],
  ["verify", "--on", "node-a"],
  ["explain", "default/lb", "--on", "node-a"],
  ["ownership", "--on", "node-a"],
  ["flows", "--on", "node-a"],
  ["doctor", "--on", "node-a"],
  ["trace", "--from", "outside", "--to", "203.0.113.50:80", "--on", "node-a"],
];

const ESC = "\u001b]0;owned\u0007\u001b[2J\u009b31m";
const EVIL = `a${ESC}\r\nFORGED`;
const DEEP = `${"[".repeat(200_000)}${"]".repeat(200_000)}`;
const CONFIGURATION = {
  kind: "KubeProxyConfiguration",
  apiVersion: "kubeproxy.config.k8s.io/v1alpha1",
  mode: "iptables",
};

const ANSWERS: readonly (readonly [what: string, pages: Readonly<Record<string, unknown>>])[] = [
  [
    "escape sequences in every page",
    Object.fromEntries(["/proxyMode", "/configz", "/metrics", "/livez", "/ownership"].map((path) => [path, EVIL])),
  ],
  [
    "escape sequences in every field",
    {
      "/proxyMode": "iptables",
      "/configz": {
        "kubeproxy.config.k8s.io": { ...CONFIGURATION, mode: EVIL, clusterCIDR: EVIL, hostnameOverride: EVIL },
      },
      "/metrics": `fairlead_build_info{version="${ESC}",service_proxy_name="${ESC}"} 1\n`,
      "/livez": { healthy: false, lastUpdated: EVIL },
      "/ownership": {
        services: [
          {
            service: EVIL,
            ipFamily: EVIL,
            ownership: EVIL,
            why: EVIL,
            decidingCIDRs: [EVIL],
            ownEndpoints: 1,
            excludedEndpoints: 1,
            frontends: EVIL,
          },
        ],
        networks: {
          sources: [{ source: EVIL, side: EVIL, state: EVIL }],
          cidrs: [{ cidr: EVIL, side: EVIL, source: EVIL, objects: [EVIL], stage: EVIL, why: EVIL }],
          conflicts: [],
        },
      },
    },
  ],
  ["nesting", { "/proxyMode": "iptables", "/configz": DEEP, "/ownership": DEEP, "/metrics": DEEP, "/livez": DEEP }],
  [
    "other kinds of JSON",
    { "/proxyMode": "iptables", "/configz": "[null]", "/ownership": "7", "/metrics": "{}", "/livez": "null" },
  ],
  [
    "names of the prototype",
    {
      "/proxyMode": "__proto__",
      "/configz": '{"__proto__":{"polluted":1},"constructor":{"prototype":{"polluted":1}}}',
      "/ownership": '{"__proto__":{"polluted":1},"services":[{"__proto__":{"polluted":1}}]}',
    },
  ],
  [
    "paths of this host",
    {
      "/proxyMode": "iptables",
      "/configz": { "kubeproxy.config.k8s.io": { ...CONFIGURATION, clientConnection: { kubeconfig: "/etc/shadow" } } },
    },
  ],
];

// biome-ignore lint/suspicious/noControlCharactersInRegex: that is what is looked for
const CONTROL = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/;

describe.each(ANSWERS)("a pod that answers with %s", (_what, pages) => {
  test.each(COMMANDS)("%s", async (...argv) => {
    rogue(pages);
    const run = await fairlead([...argv, ...(argv[0] === "doctor" ? [] : ["-f", objects])], {
      env: { KUBECONFIG: cluster.kubeconfig },
    });
    expect([0, 1, 3]).toContain(run.code);
    expect(run.out + run.err).not.toMatch(CONTROL);
    expect(run.out + run.err).not.toMatch(/^FORGED/m);
    expect(run.err).not.toMatch(/\n\s+at /);
    expect(run.out + run.err).not.toContain("root:");
    expect("polluted" in {}).toBe(false);
  });
});

test.each(COMMANDS)("a pod whose programs print escape sequences: %s", async (...argv) => {
  const rules = scenario.iptables.replaceAll("cluster IP", `cluster ${ESC}`);
  const conntrack = `tcp 6 100 ESTABLISHED src=10.144.1.9${ESC} dst=10.96.0.10 sport=1 dport=80 src=10.144.1.5 dst=10.144.1.9 sport=8080 dport=1\n`;
  rogue(
    { "/proxyMode": "iptables" },
    {
      "iptables-nft-save": rules,
      "iptables --version": ESC,
      "conntrack -L -f ipv4 -p tcp": conntrack,
      conntrack: "",
      "ip -json address": JSON.stringify([{ ifname: ESC, addr_info: [{ family: "inet", local: ESC }] }]),
    },
  );
  const run = await fairlead([...argv, ...(argv[0] === "doctor" ? [] : ["-f", objects])], {
    env: { KUBECONFIG: cluster.kubeconfig },
  });
  expect([0, 1, 3]).toContain(run.code);
  expect(run.out + run.err).not.toMatch(CONTROL);
  expect(run.err).not.toMatch(/\n\s+at /);
});

test.each([...COMMANDS.filter(([name]) => name !== "ownership"), ["sysdump", "--node", "node-a"]])(
  "--as is the user of every request, also of those for programs and ports in pods: %s",
  async (...argv) => {
    rogue({ "/proxyMode": "iptables" });
    const more = argv[0] === "sysdump" ? ["--output-file", join(ownFolder(), "dump.tar.gz")] : [];
    await fairlead([...argv, ...more, "--as", "eve", "--as-group", "dev"], { env: { KUBECONFIG: cluster.kubeconfig } });
    const asked = cluster.api.requests.map(({ headers }) =>
      [headers["impersonate-user"], headers["impersonate-group"]].join(),
    );
    expect(asked.length).toBeGreaterThan(2);
    expect(new Set(asked)).toEqual(new Set(["eve,dev"]));
    expect(cluster.connections.length + cluster.execs.length).toBeGreaterThan(0);
  },
);

test.each([
  ["--as", "eve\r\nImpersonate-Group: system:masters"],
  ["--as-group", "dev\nImpersonate-Group: system:masters"],
  ["--as", "\u00e8ve"],
])("%s %j does not become a header or another name, and nothing is sent", async (flag, value) => {
  rogue({ "/proxyMode": "iptables" });
  const { code, err } = await fairlead(["status", "--as", "eve", flag, value], {
    env: { KUBECONFIG: cluster.kubeconfig },
  });
  expect(err).toContain(`${flag}=`);
  expect(err).not.toMatch(/\n\s+at /);
  expect(code).toBe(2);
  expect(cluster.api.requests).toEqual([]);
});
