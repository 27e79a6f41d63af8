import { endpointSlice, node, service } from "@fairlead/testkit";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { fileOf } from "./support/files.ts";
import { NodeCluster } from "./support/node-cluster.ts";
import { addresses } from "./support/recorded.ts";
import { fairlead } from "./support/run.ts";

const ports = [{ name: "p", port: 80, targetPort: 8080 }];
const slice = (name: string, endpoints: Parameters<typeof endpointSlice>[1]["endpoints"]) =>
  endpointSlice(`${name}-1`, { service: name, family: "IPv4", ports: [{ name: "p", port: 8080 }], endpoints });
const balanced = { type: "LoadBalancer", ingress: [{ ip: "198.51.100.7" }] } as const;
const OBJECTS = [
  service("web", { ...balanced, clusterIPs: ["10.96.0.10"], sourceRanges: ["192.0.2.0/24"], ports }),
  slice("web", [
    { address: "10.244.1.10", nodeName: "win-1" },
    { address: "10.244.2.20", nodeName: "win-2" },
  ]),
  service("empty", { clusterIPs: ["10.96.0.11"], ports }),
  slice("empty", []),
];
const WINDOWS = ["--mode", "kernelspace", "--node", "win-1"];
const on = (command: readonly string[], ...more: readonly string[]) =>
  fairlead([...command, "-f", "-", ...WINDOWS, ...more], { stdin: JSON.stringify(OBJECTS) });

test("plan lists the calls to HCN, with addresses in the place of ids", async () => {
  const { out, code } = await on(["plan"]);
  const balancer = (FrontendVIPs: readonly string[], Flags?: number) =>
    JSON.stringify({
      HostComputeEndpoints: ["10.244.1.10", "10.244.2.20"],
      FrontendVIPs,
      PortMappings: [{ Protocol: 6, InternalPort: 8080, ExternalPort: 80, Flags }],
    });
  expect(out.split("\n")).toEqual([
    "# HcnCreateEndpoint",
    '{"HostComputeNetwork":"l2bridge","IpConfigurations":[{"IpAddress":"10.244.2.20"}],"MacAddress":"02-11-0a-f4-02-14","Flags":1}',
    "# HcnCreateLoadBalancer",
    balancer(["10.96.0.10"]),
    balancer(["198.51.100.7"], 16),
    "",
  ]);
  expect(code).toBe(0);
});

test("plan does not guess what an overlay's routes decide", async () => {
  const { err, code } = await on(["plan"], "--agent-flag=source-vip=10.244.1.200");
  expect(err).toContain("--output=rules in kernelspace mode: winkernel.sourceVip is set, as on an overlay");
  expect(code).toBe(3);
  expect((await on(["plan", "-o", "summary"], "--agent-flag=source-vip=10.244.1.200")).code).toBe(0);
});

test("plan has an overlay's routes from the Nodes' pod CIDRs, and says so", async () => {
  const nodes = [1, 2].map((at) =>
    node(`win-${at}`, { addresses: [`192.0.2.${at}`], podCIDRs: [`10.244.${at}.0/24`], zone: "a" }),
  );
  const stdin = JSON.stringify([...nodes, ...OBJECTS]);
  const argv = ["plan", "-f", "-", ...WINDOWS, "--agent-flag=source-vip=10.244.1.200"] as const;
  const { out, err, code } = await fairlead(argv, { stdin });
  const remote = (address: string, MacAddress: string, provider: string) => ({
    HostComputeNetwork: "overlay",
    IpConfigurations: [{ IpAddress: address }],
    MacAddress,
    Flags: 1,
    Policies: [{ Type: "ProviderAddress", Settings: { ProviderAddress: provider } }],
  });
  const lines = out.split("\n");
  expect(lines).toContain(JSON.stringify(remote("10.244.2.20", "02-11-0a-f4-02-14", "192.0.2.2")));
  expect(lines).toContain(JSON.stringify(remote("10.96.0.10", "MAC of 192.0.2.1", "192.0.2.1")));
  expect(out).toContain('"SourceVIP":"10.244.1.200"');
  expect(err).toContain("the routes of the overlay are taken from the Nodes' spec.podCIDRs");
  expect(code).toBe(0);
});

test("a service without endpoints has no load balancer: Windows has no rule that refuses", async () => {
  const { out } = await on(["explain", "empty"]);
  expect(out).toMatch(/cluster-ip 10\.96\.0\.11:80 +no load balancer +no load balancer +no load balancer/);
  const { out: data } = await on(["explain", "empty", "-o", "json"]);
  expect(JSON.parse(data).families[0].ports[0].unserved).toBe("no load balancer");
  expect((await on(["plan", "-o", "summary"])).out).toMatch(/^default\/empty:p .* 0 +0 +no load balancer$/m);
});

test("source ranges are named as open", async () => {
  expect((await on(["explain", "web"])).out).toContain("\nopen: spec.loadBalancerSourceRanges ");
});

const rules = fileOf("*nat\nCOMMIT\n", "rules");
const file = fileOf(JSON.stringify(OBJECTS), "objects.json");

test.each<readonly [string, ...string[]]>([
  ["verify", "-f", file, ...WINDOWS, "--rules", rules],
  ["verify", "-f", file, ...WINDOWS, "--watch"],
  ["doctor", "--mode", "kernelspace"],
  ["explain", "web", "-f", file, ...WINDOWS, "--rules", rules],
  ["explain", "web", "-f", file, ...WINDOWS, "--to-mode", "nftables"],
  ["migrate", "-f", file, "--mode", "kernelspace", "--to-mode", "nftables"],
  ["trace", "-f", file, ...WINDOWS, "--from", "pod", "--to", "web"],
  ["diff", file, file, ...WINDOWS],
])("%s %s …: the mode cannot be read from here", async (...argv) => {
  const { out, err, code } = await fairlead(argv, { env: { KUBECONFIG: "/does/not/exist" } });
  expect(err).toContain("mode kernelspace: what it programs is in Windows' Host Compute Network, which cannot be read");
  expect([out, code]).toEqual(["", 3]);
});

test("a plan of it is not rules", async () => {
  const { out: plan } = await on(["plan"]);
  const argv = ["trace", "--from", "10.244.1.10", "--to", "10.96.0.10:80", "--rules", "-"];
  const { err, code } = await fairlead(argv, { stdin: plan });
  expect(err).toContain("this is a plan of kernelspace mode, through which no packet can be followed");
  expect(code).toBe(3);
});

describe("a Windows node of a cluster", () => {
  const cluster = new NodeCluster();
  beforeAll(async () => {
    await cluster.start();
    const labels = { "app.kubernetes.io/name": "fairlead-windows" };
    const nodeSelector = { "kubernetes.io/os": "windows" };
    const configuration = {
      apiVersion: "kubeproxy.config.k8s.io/v1alpha1",
      kind: "KubeProxyConfiguration",
      mode: "kernelspace",
    };
    cluster.set({
      pods: [{ node: "win-1", name: "fairlead-windows-4xk", labels, container: "fairlead", nodeSelector }],
      programs: { "ip -json address": addresses, ip: "[]" },
      endpoint: { "/proxyMode": "kernelspace", "/configz": { "kubeproxy.config.k8s.io": configuration } },
    });
  });
  afterAll(() => cluster.stop());
  const asked = (...argv: readonly string[]) => fairlead(argv, { env: { KUBECONFIG: cluster.kubeconfig } });

  test("its agent says how it is set up", async () => {
    expect((await asked("plan", "--node", "win-1", "-o", "summary")).err).toContain("kernelspace mode");
  });

  test.each([["verify"], ["explain", "web"], ["trace", "--to", "10.96.0.10:80"], ["flows"]])(
    "%s looks at no kernel there",
    async (...command) => {
      const { err, code } = await asked(...command, "--on", "win-1");
      expect(err).toContain("pod kube-system/fairlead-windows-4xk is on a Windows node");
      expect([code, cluster.execs]).toEqual([3, []]);
    },
  );
});
