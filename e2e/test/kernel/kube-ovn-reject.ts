import { errorText, type IPFamily } from "@fairlead/base";
import { type Lab, openLab } from "@fairlead/lab/plain/lab";
import { fairlead, requireTool } from "@fairlead/lab/tools/page-reader";
import { type Host, NETWORKS, outside, webA1 } from "@fairlead/testkit";
import { afterAll, beforeAll, describe, expect, test } from "vitest";

/** Of a family: the tool, the sets' names, a ClusterIP and what services are in. */
const FAMILIES = {
  IPv4: {
    tool: "iptables",
    clusterIPs: "KUBE-CLUSTER-IP",
    services: "ovn40services",
    ip: "10.96.0.77",
    range: "10.96.0.0/12",
  },
  IPv6: {
    tool: "ip6tables",
    clusterIPs: "KUBE-6-CLUSTER-IP",
    services: "ovn60services",
    ip: "fd00:10:96::77",
    range: "fd00:10:96::/112",
  },
} as const;
const CHECK = "kube-ovn's REJECT of services:";
const PORTS = { tcp: [80], udp: [] };

describe("kube-ovn's REJECT of services, on a kernel with ipsets", () => {
  let lab: Lab;
  /** Why this kernel has no ipsets. */
  let withoutSets: string | undefined;

  beforeAll(async () => {
    await requireTool();
    lab = await openLab({ podPorts: PORTS, landingPorts: PORTS });
    withoutSets = await node("ipset", "create", "probe", "hash:ip").then(() => undefined, errorText);
  });

  afterAll(() => lab.dispose());

  test.for<[variant: "nft" | "legacy", family: IPFamily]>([
    ["nft", "IPv4"],
    ["legacy", "IPv4"],
    ["nft", "IPv6"],
  ])(
    "%s, %s: a pod that is not masqueraded is refused, and doctor names the rule",
    async ([variant, family], { skip }) => {
      if (withoutSets !== undefined && (process.env["CI"] ?? "") === "") skip(withoutSets);
      const { tool, ip } = FAMILIES[family];
      const iptables = (...args: readonly string[]) => node(`${tool}-${variant}`, ...args);
      await serveBySets(iptables, family);
      expect([await asks(webA1, ip), await asks(outside, ip), await diagnosis()]).toEqual([
        "answer",
        "answer",
        `✓ ${CHECK} none`,
      ]);

      await rejectAsKubeOVN(iptables, family);
      expect([await asks(webA1, ip), await asks(outside, ip)]).toEqual(["refused", "answer"]);
      expect(await diagnosis()).toMatch(
        new RegExp(`^✗ ${CHECK} -A INPUT .*${FAMILIES[family].services}.*; -A OUTPUT `),
      );

      for (const chain of ["INPUT", "OUTPUT"]) await iptables("-D", chain, "1");
      expect([await asks(webA1, ip), await diagnosis()]).toEqual(["answer", `✓ ${CHECK} none`]);
      await clear(iptables, family);
    },
  );

  const node = (program: string, ...args: readonly string[]) => lab.runner("node-a").run([program, ...args]);

  type Tables = (...args: readonly string[]) => Promise<unknown>;

  /**
   * What ipvs mode has: the address at the node, the set of ClusterIPs, a mark for whoever is no pod of ours. In place
   * of the kernel's IPVS, which comes after filter's INPUT, the node itself answers.
   */
  async function serveBySets(iptables: Tables, family: IPFamily): Promise<void> {
    const { clusterIPs, ip } = FAMILIES[family];
    const inSet = ["-m", "set", "--match-set", clusterIPs, "dst,dst"];
    await node("ip", "address", "add", ip, "dev", "lo");
    await node("ipset", "create", clusterIPs, "hash:ip,port", "family", family === "IPv4" ? "inet" : "inet6");
    await node("ipset", "add", clusterIPs, `${ip},tcp:80`);
    await iptables("-t", "nat", "-N", "KUBE-MARK-MASQ");
    await iptables("-t", "nat", "-A", "KUBE-MARK-MASQ", "-j", "MARK", "--or-mark", "0x4000");
    await iptables("-t", "nat", "-N", "KUBE-SERVICES");
    await iptables(
      "-t",
      "nat",
      "-A",
      "KUBE-SERVICES",
      "!",
      "-s",
      NETWORKS.calico[family],
      ...inSet,
      "-j",
      "KUBE-MARK-MASQ",
    );
    await iptables("-t", "nat", "-A", "KUBE-SERVICES", ...inSet, "-j", "ACCEPT");
    await iptables("-t", "nat", "-A", "PREROUTING", "-j", "KUBE-SERVICES");
  }

  /** As its daemon does where that set exists (pkg/daemon/gateway_linux.go). */
  async function rejectAsKubeOVN(iptables: Tables, family: IPFamily): Promise<void> {
    const { services, range } = FAMILIES[family];
    await node("ipset", "create", services, "hash:net", "family", family === "IPv4" ? "inet" : "inet6");
    await node("ipset", "add", services, range);
    const unmarked = ["-p", "tcp", "-m", "mark", "!", "--mark", "0x4000/0x4000"];
    const rule = [
      ...unmarked,
      "-m",
      "set",
      "--match-set",
      services,
      "dst",
      "-m",
      "conntrack",
      "--ctstate",
      "NEW",
      "-j",
      "REJECT",
    ];
    for (const chain of ["INPUT", "OUTPUT"]) await iptables("-t", "filter", "-I", chain, "1", ...rule);
  }

  async function clear(iptables: Tables, family: IPFamily): Promise<void> {
    await iptables("-t", "nat", "-F");
    await iptables("-t", "nat", "-X");
    for (const set of [FAMILIES[family].clusterIPs, FAMILIES[family].services]) await node("ipset", "destroy", set);
    await node("ip", "address", "delete", FAMILIES[family].ip, "dev", "lo");
  }

  /** How one request over TCP ends. */
  async function asks(host: Host, to: string): Promise<string> {
    const [result] = await lab
      .peer(host)
      .send({ protocol: "TCP", to, port: 80, count: 1, parallel: 1, timeoutMs: 5_000 });
    return result?.kind ?? "nothing";
  }

  async function diagnosis(): Promise<string | undefined> {
    const where = ["--cluster-cidr", NETWORKS.calico.IPv4, "--service-cidr", FAMILIES.IPv4.range];
    const { out } = await fairlead(lab, "doctor", "--mode", "ipvs", ...where);
    return out
      .split("\n")
      .find((line) => line.includes(CHECK))
      ?.trim();
  }
});
