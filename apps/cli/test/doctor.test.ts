import type { AgentConfig } from "@fairlead/config";
import { type Argv, CommandError, type Runner } from "@fairlead/kernel";
import { service, userDefinedNetwork as udn } from "@fairlead/testkit";
import { LightApiServer } from "@fairlead/testkit/api-server";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { parse } from "yaml";
import { type CommandResult, fastPathFacts } from "../src/commands/doctor/facts.ts";
import { readState } from "../src/node/read-state.ts";
import { configFile, kubeconfigFor } from "./support/files.ts";
import { allRights } from "./support/node-cluster.ts";
import { fairlead, programs } from "./support/run.ts";

/** A host on which a plain user looks: programs are there, and the kernel refuses. */
const refused = (argv: Argv) => new CommandError({ argv, reason: "exit", exitCode: 1, stderr: "Permission denied" });
const plainUser: Runner = {
  run: async (argv) => {
    if (argv.includes("--version")) return { stdout: "", stderr: "" };
    throw refused(argv);
  },
  // biome-ignore lint/correctness/useYield: it fails before the first piece
  async *stream(argv) {
    throw refused(argv);
  },
};

test("proxies of other network namespaces, and those that have ended, do not count for this node", async () => {
  const answers = new Map([
    ["ps -e -o pid=,comm=", "    7 kube-proxy\n   19 kube-proxy\n   23 kube-proxy\n   29 kube-proxy\n"],
    ["readlink -v /proc/self/ns/net", "net:[4026531840]\n"],
    ["readlink -v /proc/7/ns/net", "net:[4026531840]\n"],
    ["readlink -v /proc/19/ns/net", "net:[4026532335]\n"],
  ]);
  const runner: Runner = {
    ...plainUser,
    run: async (argv, options) => {
      if (argv.join(" ") === "readlink -v /proc/29/ns/net") {
        const stderr = `readlink: ${argv[2]}: No such file or directory`;
        throw new CommandError({ argv, reason: "exit", exitCode: 1, stderr });
      }
      const stdout = answers.get(argv.join(" "));
      return stdout === undefined ? plainUser.run(argv, options) : { stdout, stderr: "" };
    },
  };
  const { out } = await fairlead(["doctor", "--cluster-cidr", "10.144.0.0/16"], {
    runner,
    env: { KUBECONFIG: "/does/not/exist" },
  });
  // The network namespace of process 23 is unknown.
  expect(out).toContain("proxies on this node: kube-proxy (process 7), kube-proxy (process 23)");
});

test("what a plain user may not look at is unknown, never good", async () => {
  const { out, code } = await fairlead(["doctor", "--cluster-cidr", "10.144.0.0/16", "--mode", "ipvs"], {
    runner: plainUser,
    env: { KUBECONFIG: "/does/not/exist" },
  });
  expect(out).not.toContain("✓");
  expect(out).toContain("✗ iptables: nft, but its rules may not be read");
  for (const check of ["policies", "connection tracking", "ipset", "proxies on this node", "CIDRs"]) {
    expect(out).toMatch(new RegExp(`^\\? ${check}: .*\\n    → `, "m"));
  }
  expect(code).toBe(1);
});

describe("in userspace mode", () => {
  const bare: Runner = {
    ...plainUser,
    run: async (argv, options) => {
      if (argv.join(" ").includes("iptables")) throw new CommandError({ argv, reason: "not-found" });
      return plainUser.run(argv, options);
    },
    // biome-ignore lint/correctness/useYield: it fails before the first piece
    async *stream(argv) {
      throw argv.join(" ").includes("tables") ? new CommandError({ argv, reason: "not-found" }) : refused(argv);
    },
  };
  const doctor = (...args: readonly string[]) =>
    fairlead(["doctor", "--cluster-cidr", "10.144.0.0/16", ...args], {
      runner: bare,
      env: { KUBECONFIG: "/does/not/exist" },
    });

  test("iptables is needed, as by its rules", async () => {
    const { out, err } = await doctor("--mode", "userspace");
    expect(err).not.toContain("no plan can be made");
    expect(out).toContain("✗ iptables: not found");
  });

  test("with --userspace-only it is not", async () => {
    const { out } = await doctor("--mode", "userspace", "--agent-flag=--userspace-only");
    expect(out).toContain("✓ iptables: not found, and not needed");
  });
});

test("where a node has no program that prints files, what they say is unknown and not bad", async () => {
  const { out } = await fairlead(["doctor", "--cluster-cidr", "10.144.0.0/16"], {
    runner: programs({}),
    env: { KUBECONFIG: "/does/not/exist" },
  });
  expect(out).toContain("? net.ipv4.ip_forward");
  expect(out).toContain("? connection tracking");
});

const BOOT = "5a1f";
const table = (of: string, flowtable: string, devices: string) =>
  `table ${of} {\n\tflowtable ${flowtable} {\n\t\thook ingress priority filter\n\t\tdevices = { ${devices} }\n\t}\n}\n`;
const LINKS = [
  { ifindex: 2, ifname: "cni0", linkinfo: { info_kind: "bridge" }, addr_info: [{ local: "10.144.1.1" }] },
  { ifindex: 3, ifname: "cali1", linkinfo: { info_kind: "veth" } },
  { ifindex: 4, ifname: "ovs-system", linkinfo: { info_kind: "openvswitch" } },
  { ifindex: 5, ifname: "port1", linkinfo: { info_kind: "veth" }, master: "ovs-system" },
];
const SEEN = {
  "nft list flowtables": "table ip kube-proxy {\n}\ntable ip6 kube-proxy {\n}\ntable ip calico {\n}\n",
  "nft -a list table ip kube-proxy": table("ip kube-proxy", "fast-path", "cali1, cali2"),
  "nft -a list table ip6 kube-proxy": table("ip6 kube-proxy", "fast-path", "cali1, cali2"),
  "nft -a list table ip calico": table("ip calico", "offload", "cali2, cali3"),
  "ip -json -details address show": JSON.stringify(LINKS),
  "ip -json -4 route show": "[ ]",
  "ip -json -6 route show": "",
  "cat /proc/sys/net/netfilter/nf_flowtable_tcp_timeout": "30\n",
  "cat /proc/sys/net/bridge/bridge-nf-call-iptables": "1\n",
  "cat /proc/sys/kernel/random/boot_id": `${BOOT}\n`,
  "cat /run/fairlead/fast-path.json": JSON.stringify({ boot: BOOT, release: "6.12", outcome: "passed" }),
};

const NETWORKS = {
  clusterCIDRs: ["10.144.0.0/16"],
  multiCNI: { excludeClusterCIDRs: ["10.200.0.0/16"], excludeCIDRsFrom: [], clusterCIDRsFrom: [] },
};

/** What a node shows, but for what is said of it. */
async function facts(
  changed: Readonly<Record<string, string | CommandResult["kind"] | undefined>> = {},
  configured = {},
) {
  const config = {
    nftables: { fastPath: { devices: ["cali*", "cni0", "port*"] } },
    ...NETWORKS,
    ...configured,
    serviceProxyName: "",
    stateDir: "/run/fairlead",
  } as unknown as AgentConfig;
  const seen = { ...SEEN, ...changed };
  const printed = Object.entries(seen).flatMap(([argv, text]) => (text?.includes("seen") ? [] : [[argv, text ?? ""]]));
  const state = await readState(programs(Object.fromEntries(printed)), "programs");
  return fastPathFacts(config, state, async (...argv) => {
    const found = seen[argv.join(" ") as keyof typeof seen];
    if (found === "unseen") return { kind: "unseen" };
    return found === undefined || found === "absent" ? { kind: "absent" } : { kind: "seen", text: found };
  });
}

const NOTED = "cat /run/fairlead/fast-path.json";

test("devices of our flowtable, those that are left out, and another program's", async () => {
  expect(await facts()).toEqual({
    flowtables: true,
    test: { kind: "passed" },
    devices: ["cali1", "cali2"],
    refused: [
      { device: "cni0", reason: expect.stringContaining("it is a bridge") },
      { device: "port1", reason: "it belongs to Open vSwitch" },
    ],
    others: [{ table: "ip calico", flowtable: "offload", devices: ["cali2"] }],
  });
});

test.each([
  [
    "a kernel without flowtables",
    { "cat /proc/sys/net/netfilter/nf_flowtable_tcp_timeout": "absent" },
    { flowtables: false },
  ],
  [
    "no flowtable of ours",
    {
      "nft list flowtables": "table ip kube-proxy {\n}\n",
      "nft -a list table ip kube-proxy": "table ip kube-proxy {\n}\n",
    },
    { devices: "no flowtable" },
  ],
  ["tables that may not be listed", { "nft list flowtables": "unseen" }, { devices: undefined, others: [] }],
  ["a result of before the boot", { "cat /proc/sys/kernel/random/boot_id": "77\n" }, { test: { kind: "none" } }],
  ["no result", { [NOTED]: "absent" }, { test: { kind: "none" } }],
  ["a result that is not JSON", { [NOTED]: "{" }, { test: { kind: "none" } }],
  ["a result that may not be read", { [NOTED]: "unseen" }, { test: { kind: "unknown" } }],
  [
    "a failed test",
    { [NOTED]: JSON.stringify({ boot: BOOT, outcome: "failed", reason: "no answer" }) },
    { test: { kind: "failed", reason: "no answer" } },
  ],
] as const)("%s", async (_what, changed, expected) => {
  expect(await facts(changed)).toMatchObject(expected);
});

test("auto without clusterCIDR", async () => {
  const nftables = { fastPath: { devices: "auto" } };
  const found = await facts({ "nft list flowtables": "" }, { nftables, clusterCIDRs: [] });
  expect(found).toMatchObject({ devices: "no flowtable", auto: expect.stringContaining("clusterCIDR"), refused: [] });
});

test("nothing is looked at where it is not configured", async () => {
  const config = { nftables: {}, serviceProxyName: "", stateDir: "" } as unknown as AgentConfig;
  expect(await fastPathFacts(config, { problems: {} }, async () => expect.unreachable())).toBeUndefined();
});

const REJECT =
  "-A INPUT -p tcp -m mark ! --mark 0x4000/0x4000 -m set --match-set ovn40services dst -m conntrack --ctstate NEW -j REJECT --reject-with icmp-port-unreachable";
const BY_SETS = "-A KUBE-SERVICES -m set --match-set KUBE-CLUSTER-IP dst,dst -j ACCEPT";

const rules = (text: string) => ({
  "iptables-nft-save": text,
  "ip6tables-nft-save": "",
});

const HOST = ["doctor", "--cluster-cidr", "10.144.0.0/16", "--service-cidr", "10.96.0.0/12"];

describe("what other networks left on the node", () => {
  const noCluster = { env: { KUBECONFIG: "/does/not/exist" } };

  test("kube-ovn's REJECT alongside ipvs mode is found in the rules, with what to do", async () => {
    const text = `*filter\n:INPUT ACCEPT [0:0]\n${REJECT}\nCOMMIT\n*nat\n${BY_SETS}\nCOMMIT\n`;
    const { out, code } = await fairlead([...HOST, "--mode", "ipvs"], { ...noCluster, runner: programs(rules(text)) });
    expect(out).toContain(`✗ kube-ovn's REJECT of services: ${REJECT}\n    → use iptables or nftables mode`);
    expect(code).toBe(1);
  });

  test("its rules of IPv6 are found, and without a proxy's sets they are a warning", async () => {
    const runner = programs({ ...rules(""), "ip6tables-nft-save": `${REJECT.replace("ovn40", "ovn60")}\n` });
    const { out } = await fairlead(HOST, { ...noCluster, runner });
    expect(out).toContain("! kube-ovn's REJECT of services: -A INPUT");
    expect(out).toContain("remove the ipset that ipvs mode left with `ipset destroy KUBE-CLUSTER-IP`");
  });

  test("rules that node-local DNS left, in the words of both tools", async () => {
    const rule = (address: string, target: string) =>
      `-A PREROUTING -d ${address}/32 -p udp -m udp --dport 53 -m comment --comment "NodeLocal DNS Cache: skip conntrack" -j ${target}`;
    const text = `*raw\n${rule("169.254.20.10", "CT --notrack")}\n${rule("10.96.0.10", "NOTRACK")}\nCOMMIT\n`;
    const { out } = await fairlead([...HOST, "-o", "json"], { ...noCluster, runner: programs(rules(text)) });
    const found: readonly { readonly check: string; readonly found: string }[] = JSON.parse(out);
    const lines = found.flatMap((one) => (one.check === "node-local DNS" ? [one.found] : []));
    expect(lines.map((line) => /^has rules for (\S+?)[,;]/.exec(line)?.[1])).toEqual(["169.254.20.10", "10.96.0.10"]);
  });

  test("Cilium's chains are found in the rules", async () => {
    const runner = programs(rules("*filter\n:CILIUM_INPUT - [0:0]\nCOMMIT\n"));
    const { out } = await fairlead(HOST, { ...noCluster, runner });
    expect(out).toContain("Cilium in kube-proxy's place: there are its chains: CILIUM_INPUT");
  });

  test("pinned maps speak for Calico's BPF and for Cilium", async () => {
    const pinned = "cali_v4_nat_fe3\ncali_v4_routes\ncilium_lb4_services_v2\n";
    const runner = programs({ ...rules(""), "ls /sys/fs/bpf/tc/globals": pinned });
    const { out } = await fairlead(HOST, { ...noCluster, runner });
    expect(out).toContain("! Calico with BPF: its maps of services are pinned on this node: cali_v4_nat_fe3\n");
    expect(out).toContain("! Cilium in kube-proxy's place: its maps of services are pinned on this node: cilium_lb4");
  });
});

describe("what a cluster says of its networks", () => {
  const server = new LightApiServer();
  let kubeconfig = "";
  const learned = (name: string, cidrBlock: string) =>
    server.store.put("/apis/kubeovn.io/v1/subnets", { metadata: { name }, spec: { cidrBlock } });
  const pool = (name: string, cidr: string) =>
    server.store.put("/apis/projectcalico.org/v3/ippools", { metadata: { name }, spec: { cidr } });

  beforeAll(async () => {
    kubeconfig = kubeconfigFor(await server.start());
    server.answerInstead = allRights;
  });
  afterAll(() => server.stop());

  const ask = (...more: readonly string[]) =>
    fairlead(["doctor", "--kubeconfig", kubeconfig, ...more], { runner: programs(rules("")) });

  test("Calico's BPF and a Cilium in kube-proxy's place are recognized by their objects", async () => {
    server.store.put("/api/v1/configmaps", {
      metadata: { name: "cilium-config", namespace: "kube-system" },
      data: { "kube-proxy-replacement": "true" },
    });
    const felix = { metadata: { name: "default" }, spec: { bpfEnabled: true } };
    server.store.put("/apis/crd.projectcalico.org/v1/felixconfigurations", felix);
    const { out } = await ask();
    expect(out).toContain("✗ Calico with BPF: FelixConfiguration default has bpfEnabled: true, and its clean-up");
    expect(out).toContain(
      '✗ Cilium in kube-proxy\'s place: ConfigMap kube-system/cilium-config has kube-proxy-replacement: "true"',
    );
  });

  test("Gateways of our controller that are not programmed are named with what they wait for", async () => {
    const put = (plural: string, name: string, spec: object, conditions: readonly object[] = []) => {
      const metadata = { namespace: "shop", name };
      server.store.put(`/apis/gateway.networking.k8s.io/v1/${plural}`, { metadata, spec, status: { conditions } });
    };
    put("gatewayclasses", "fairlead", { controllerName: "fairlead.dev/gateway" });
    put("gatewayclasses", "envoy", { controllerName: "example.com/envoy" });
    const isTrue = (type: string) => ({ type, status: "True", reason: type, message: "" });
    const waits = { type: "Programmed", status: "False", reason: "AddressNotAssigned", message: "no address yet" };
    put("gateways", "db", { gatewayClassName: "fairlead" }, [isTrue("Accepted"), isTrue("Programmed")]);
    put("gateways", "dns", { gatewayClassName: "fairlead" }, [isTrue("Accepted"), waits]);
    put("gateways", "new", { gatewayClassName: "fairlead" });
    put("gateways", "web", { gatewayClassName: "envoy" });
    const { out } = await ask();
    expect(out).toContain(
      "! Gateways: not programmed: shop/dns (AddressNotAssigned: no address yet); shop/new (Pending: not Accepted yet)",
    );
    expect(out).not.toMatch(/shop\/(?:db|web)/);
  });

  test("Services in a VPC and in a user-defined network: served, until rules leave them to their networks", async () => {
    const annotations = { "ovn.kubernetes.io/vpc": "blue" };
    const blue = service("blue", { clusterIPs: ["10.96.1.1"], ports: [{ port: 80 }], annotations });
    const lb = { ingress: [{ ip: "203.0.113.7" }], sourceRanges: ["2001:db8:5::/48"], ports: [{ port: 80 }] };
    const open = service("open", { type: "LoadBalancer", clusterIPs: ["10.96.1.2"], ...lb });
    for (const one of [blue, open, udn.service]) server.store.put("/api/v1/services", one);
    for (const one of [udn.slice, udn.mirrored]) server.store.put("/apis/discovery.k8s.io/v1/endpointslices", one);
    server.store.put("/apis/kubeovn.io/v1/subnets", {
      metadata: { name: "blue-net" },
      spec: { vpc: "blue", cidrBlock: "10.0.1.0/24" },
    });
    server.store.put("/api/v1/namespaces", udn.namespace);
    server.store.put("/apis/kubeovn.io/v1/vpcs", { metadata: { name: "main" }, status: { default: true } });
    const { out } = await ask();
    expect(out).toMatch(/! what Services ask for: default\/open: spec\.loadBalancerSourceRanges /);
    const [, advice = ""] = /! Services in networks .* here, (.*)$/m.exec(out) ?? [];
    expect(advice).toContain("VPC blue (Subnet blue-net 10.0.1.0/24): default/blue");
    expect(advice).toContain("user-defined network l3-network: nad-l3/sample-deployment");
    const [, rules = ""] = /→ add (.*) to multiCNI\.serviceRules/.exec(out) ?? [];
    const serviceRules = parse(`[${rules.replaceAll(" and ", ", ")}]`);
    const followed = await ask("--config", configFile({ multiCNI: { serviceRules } }));
    expect(followed.out).toContain(
      "✓ Services in networks that nodes do not share: left to their networks: VPC blue (",
    );
  });

  test("learned CIDRs that overlap are reported with their objects", async () => {
    learned("ovn-default", "10.16.0.0/16");
    pool("same", "10.16.0.0/16");
    pool("services", "10.97.0.0/16");
    const { out } = await ask(
      "--service-cidr=10.96.0.0/12",
      "--agent-flag=exclude-cidrs-from=kube-ovn-subnets",
      "--agent-flag=cluster-cidr-from=calico-ippools",
    );
    expect(out).toContain(
      "✗ CIDRs on both sides: overlapping: excluded pods 10.16.0.0/16 of kube-ovn-subnets (Subnet/ovn-default) and",
    );
    expect(out).toContain(
      "✗ CIDRs of services: overlapping: pods 10.97.0.0/16 of calico-ippools (IPPool/services) and",
    );
  });
});
