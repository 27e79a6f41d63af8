import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { service, userDefinedNetwork as udn } from "@fairlead/testkit";
import { LightApiServer } from "@fairlead/testkit/api-server";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { programs } from "./support/programs.ts";
import { fairlead } from "./support/run.ts";

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

  test("kube-ovn's REJECT beside ipvs mode is found in the rules, with what to do", async () => {
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
  let dir = "";
  const learned = (name: string, cidrBlock: string) =>
    server.store.put("/apis/kubeovn.io/v1/subnets", { metadata: { name }, spec: { cidrBlock } });
  const pool = (name: string, cidr: string) =>
    server.store.put("/apis/projectcalico.org/v3/ippools", { metadata: { name }, spec: { cidr } });

  beforeAll(async () => {
    dir = await mkdtemp(join(tmpdir(), "fairlead-doctor-"));
    const cluster = { server: await server.start() };
    const context = { name: "c", context: { cluster: "c", user: "u" } };
    const config = { clusters: [{ name: "c", cluster }], contexts: [context], "current-context": "c" };
    await writeFile(join(dir, "kubeconfig"), JSON.stringify({ ...config, users: [{ name: "u", user: {} }] }));
  });
  afterAll(async () => {
    await server.stop();
    await rm(dir, { recursive: true });
  });

  /** The server allows all that is asked for. */
  const ask = (...more: readonly string[]) => {
    for (let reviews = 0; reviews < 7; reviews++) {
      server.intercept(({ path }, response) => {
        if (!path.endsWith("/selfsubjectaccessreviews")) return false;
        response.writeHead(201).end(JSON.stringify({ status: { allowed: true } }));
        return true;
      });
    }
    return fairlead(["doctor", "--kubeconfig", join(dir, "kubeconfig"), ...more], { runner: programs(rules("")) });
  };

  test("Calico's BPF and a Cilium in kube-proxy's place are told by their objects", async () => {
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

  test("Services in a VPC and in a user-defined network: served, until rules leave them to their networks", async () => {
    const annotations = { "ovn.kubernetes.io/vpc": "blue" };
    const blue = service("blue", { clusterIPs: ["10.96.1.1"], ports: [{ port: 80 }], annotations });
    for (const one of [blue, udn.service]) server.store.put("/api/v1/services", one);
    for (const one of [udn.slice, udn.mirrored]) server.store.put("/apis/discovery.k8s.io/v1/endpointslices", one);
    server.store.put("/apis/kubeovn.io/v1/subnets", {
      metadata: { name: "blue-net" },
      spec: { vpc: "blue", cidrBlock: "10.0.1.0/24" },
    });
    server.store.put("/api/v1/namespaces", udn.namespace);
    server.store.put("/apis/kubeovn.io/v1/vpcs", { metadata: { name: "main" }, status: { default: true } });
    const { out } = await ask();
    const [, advice = ""] = /! Services in networks .* here, (.*)$/m.exec(out) ?? [];
    expect(advice).toContain("VPC blue (Subnet blue-net 10.0.1.0/24): default/blue");
    expect(advice).toContain("user-defined network l3-network: nad-l3/sample-deployment");
    const [, rules = ""] = /→ add (.*) to multiCNI\.serviceRules/.exec(out) ?? [];
    const config = join(dir, "config.conf");
    const documents = [
      "apiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\nmode: iptables",
      `apiVersion: fairlead.dev/v1alpha1\nkind: FairleadConfiguration\nmultiCNI: {serviceRules: [${rules.replaceAll(" and ", ", ")}]}`,
    ];
    await writeFile(config, documents.join("\n---\n"));
    const followed = await ask("--config", config);
    expect(followed.out).toContain(
      "✓ Services in networks that nodes do not share: left to their networks: VPC blue (",
    );
  });

  test("learned CIDRs that overlap are told with their objects", async () => {
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
