import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { endpointSlice, node, service, userDefinedNetwork as udn } from "@fairlead/testkit";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { fairlead } from "./support/run.ts";

let dir = "";
let ruled = "";
beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), "fairlead-pod-networks-"));
  ruled = join(dir, "config.conf");
  const documents = [
    { apiVersion: "kubeproxy.config.k8s.io/v1alpha1", kind: "KubeProxyConfiguration", mode: "iptables" },
    {
      apiVersion: "fairlead.dev/v1alpha1",
      kind: "FairleadConfiguration",
      multiCNI: {
        excludedFrontends: "excluded-clients",
        serviceRules: [
          { annotation: "ovn.kubernetes.io/vpc", notIn: [{ defaultVPC: true }], ownership: "foreign" },
          { namespaceLabel: "k8s.ovn.org/primary-user-defined-network", ownership: "foreign" },
        ],
      },
    },
  ];
  await writeFile(ruled, documents.map((one) => JSON.stringify(one)).join("\n---\n"));
});
afterAll(() => rm(dir, { recursive: true }));

function ask(objects: readonly unknown[], ...command: readonly string[]) {
  const stdin = JSON.stringify([node("ovn-worker", { addresses: ["10.201.0.10"] }), ...objects]);
  return fairlead([...command, "-f", "-", "--node", "ovn-worker"], { stdin });
}

describe("a Service in a user-defined network of OVN-Kubernetes", () => {
  const objects = Object.values(udn);
  const NAME = "nad-l3/sample-deployment";

  test("explain has the endpoints there in place of the default network's, and nothing is served here", async () => {
    const { out, err } = await ask(objects, "explain", NAME, "--config", ruled);
    expect(err).toBe("");
    expect(out).toContain(
      "Its pods are in user-defined network l3-network, at 10.128.1.3 (EndpointSlice l3-network-sample-deployment-hgkmw of OVN-Kubernetes",
    );
    expect(out).toMatch(/^ +10\.128\.1\.3:80 +ovn-worker +out: another network serves the service/m);
    expect(out).not.toContain("10.244.1.17");
    expect(out).toMatch(/node-port 31372 +not served here +not served here/);
  });

  test("without the rule explain says what is served here instead, and which rule is missing", async () => {
    const { out } = await ask(objects, "explain", NAME);
    expect(out).toContain("k8s.ovn.org/open-default-ports");
    expect(out).toContain("{namespaceLabel: k8s.ovn.org/primary-user-defined-network, ownership: foreign}");
    expect(out).toMatch(/10\.244\.1\.17:80 +ovn-worker +in: ready/);
  });

  test("ownership names the network and its addresses, as JSON too", async () => {
    const { out } = await ask(objects, "ownership", "--config", ruled);
    expect(out).toMatch(/nad-l3\/sample-deployment +IPv4 +foreign .*user-defined network l3-network: 10\.128\.1\.3/);
    const { services } = JSON.parse((await ask(objects, "ownership", "--config", ruled, "-o", "json")).out);
    expect(services).toMatchObject([
      {
        frontends: "none",
        podNetwork: { kind: "user-defined network", name: "l3-network", addresses: ["10.128.1.3"] },
      },
    ]);
  });

  test("a name that is none is shown so that it changes no line", async () => {
    const annotations = { "k8s.ovn.org/endpointslice-network": "l3\n\u202enet" };
    const odd = { ...udn.mirrored, metadata: { ...(udn.mirrored["metadata"] as object), annotations } };
    const { out } = await ask([udn.service, udn.slice, odd], "explain", NAME);
    expect(out).toContain('user-defined network "l3\\n\\u202enet", at 10.128.1.3');
  });
});

describe("a Service in a VPC of kube-ovn", () => {
  const inVPC = (vpc: string) => [
    service("blue", {
      clusterIPs: ["10.96.1.1"],
      ports: [{ port: 80 }],
      annotations: { "ovn.kubernetes.io/vpc": vpc },
    }),
    endpointSlice("blue-1", {
      service: "blue",
      family: "IPv4",
      ports: [{ port: 80 }],
      endpoints: [{ address: "10.0.1.5", nodeName: "ovn-worker" }],
    }),
  ];
  const vpc = (name: string) => ({
    apiVersion: "kubeovn.io/v1",
    kind: "Vpc",
    metadata: { name },
    status: { default: true },
  });

  test("no node can reach it, with what says so and the rule that is missing", async () => {
    const { out } = await ask(inVPC("blue"), "explain", "blue");
    expect(out).toContain(
      "Its pods are in VPC blue (annotation ovn.kubernetes.io/vpc, the default VPC is ovn-cluster: no node can reach it; what is served here leads nowhere",
    );
    expect((await ask(inVPC("blue"), "ownership")).out).toMatch(/default\/blue .*; its pods are in VPC blue/);
  });

  test("the rule leaves all of it to kube-ovn; the default VPC has the name that its Vpc has", async () => {
    const main = vpc("main");
    const left = await ask([...inVPC("blue"), main], "explain", "blue", "--config", ruled);
    expect(left.out).toContain(
      "the default VPC is main: no node can reach it, and kube-ovn serves the Service inside of it",
    );
    expect(left.out).toMatch(/cluster-ip 10\.96\.1\.1:80 +not served here/);
    const served = await ask([...inVPC("main"), main], "explain", "blue", "--config", ruled);
    expect(served.out).not.toContain("VPC");
  });

  test.each(["", "ovn-cluster"])("%j is the default one", async (name) => {
    expect((await ask(inVPC(name), "explain", "blue")).out).not.toContain("VPC");
  });
});
