import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { endpointSlice, node, type RawObject, service } from "@fairlead/testkit";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { fairlead } from "./support/run.ts";

const LEARN = [
  ...["--cluster-cidr", "10.144.0.0/16", "--agent-flag", "exclude-cidrs-from=kube-ovn-subnets"],
  ...["--agent-flag", "excluded-frontends=excluded-clients"],
];

function web(name: string, clusterIP: string, address: string): readonly RawObject[] {
  return [
    service(name, { clusterIPs: [clusterIP], ports: [{ port: 80 }] }),
    endpointSlice(`${name}-1`, {
      service: name,
      family: "IPv4",
      ports: [{ port: 80 }],
      endpoints: [{ address, nodeName: "node-a" }],
    }),
  ];
}

const objects: readonly RawObject[] = [
  node("node-a", { addresses: ["10.201.0.10"] }),
  ...web("calico", "10.96.67.75", "10.144.154.71"),
  ...web("ovn", "10.96.95.98", "10.16.0.5"),
];
const subnet = (name: string, cidrBlock: unknown) => ({
  apiVersion: "kubeovn.io/v1",
  kind: "Subnet",
  metadata: { name },
  spec: { cidrBlock },
});

function ask(command: readonly string[], more: readonly unknown[], ...args: readonly string[]) {
  const stdin = JSON.stringify([...objects, ...more]);
  return fairlead([...command, "-f", "-", "--node", "node-a", ...args], { stdin });
}

describe("what an agent would learn of the networks' objects in the files", () => {
  test("a Subnet takes its service, and is named", async () => {
    const { out, err } = await ask(["ownership"], [subnet("ovn-default", "10.16.0.0/16")], ...LEARN);
    expect(err).toBe("");
    expect(out).toMatch(/default\/calico +IPv4 +ours/);
    expect(out).toMatch(/default\/ovn +IPv4 +foreign .*in 10\.16\.0\.0\/16.*\(Subnet\/ovn-default\)/);
    expect((await ask(["ownership"], [], ...LEARN)).out).toMatch(/default\/ovn +IPv4 +ours/);
  });

  test("a Vpc among the files says which VPC is the default one", async () => {
    const { spec, ...other } = subnet("main-default", "10.16.0.0/16");
    const ofMain = { ...other, spec: { ...spec, vpc: "main" } };
    const vpc = { apiVersion: "kubeovn.io/v1", kind: "Vpc", metadata: { name: "main" }, status: { default: true } };
    expect((await ask(["ownership"], [ofMain], ...LEARN)).out).toMatch(/default\/ovn +IPv4 +ours/);
    expect((await ask(["ownership"], [ofMain, vpc], ...LEARN)).out).toMatch(/default\/ovn +IPv4 +foreign/);
  });

  test("plan and explain know it, too", async () => {
    const more = [subnet("ovn-default", "10.16.0.0/16")];
    const plan = await ask(["plan"], more, ...LEARN, "-o", "json");
    expect([plan.out.includes("10.96.67.75"), plan.err]).toEqual([true, ""]);
    expect((await ask(["plan"], [], ...LEARN)).out).not.toBe((await ask(["plan"], more, ...LEARN)).out);
    expect((await ask(["explain", "default/ovn"], more, ...LEARN)).out).toContain("foreign");
  });

  test("objects of a resource that the operator describes are found by their kind; that there are none is warned of", async () => {
    const dir = await mkdtemp(join(tmpdir(), "fairlead-custom-"));
    const config = join(dir, "config.yaml");
    await writeFile(
      config,
      `apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
clusterCIDR: 10.144.0.0/16
---
apiVersion: fairlead.dev/v1alpha1
kind: FairleadConfiguration
multiCNI:
  excludedFrontends: excluded-clients
  excludeCIDRsFrom:
    - source: custom
      resource: addresspools.v1.example.org
      fields: [spec.cidr]
`,
    );
    const pool = {
      apiVersion: "example.org/v1",
      kind: "AddressPool",
      metadata: { name: "one" },
      spec: { cidr: "10.16.0.0/16" },
    };
    const { out, err } = await ask(["ownership"], [pool], "--config", config);
    expect(err).toBe("");
    expect(out).toMatch(/default\/ovn +IPv4 +foreign .*in 10\.16\.0\.0\/16/);
    const without = await ask(["ownership"], [{ ...pool, kind: "Pool" }], "--config", config);
    expect(without.err).toBe(
      "addresspools.v1.example.org: the files have no object of this resource, so nothing is learned from it. Where its " +
        "kind does not follow from the name, add its CustomResourceDefinition to the files\n",
    );
    const definition = {
      apiVersion: "apiextensions.k8s.io/v1",
      kind: "CustomResourceDefinition",
      metadata: { name: "addresspools.example.org" },
      spec: { group: "example.org", scope: "Cluster", names: { plural: "addresspools", kind: "Pool" } },
    };
    const told = await ask(["ownership"], [{ ...pool, kind: "Pool" }, definition], "--config", config);
    expect([told.err, told.out]).toEqual(["", out]);
    await rm(dir, { recursive: true });
  });

  test("what does not count is warned of", async () => {
    const { err } = await ask(
      ["ownership"],
      [subnet("all", "0.0.0.0/0"), subnet("typo", 7), subnet("bits", "10.16.0.1/16")],
      ...LEARN,
    );
    expect(err).toContain("Subnet/all: 0.0.0.0/0 does not count: covers every IPv4 address");
    expect(err).toContain("Subnet/typo: spec.cidrBlock");
    expect(err).toContain("Subnet/bits: 10.16.0.1/16 does not count: has host bits set");
  });

  test("all Nodes are read, where their podCIDRs are another network", async () => {
    const others = { ...node("node-b", { addresses: ["10.201.0.11"] }), spec: { podCIDRs: ["10.16.0.0/24"] } };
    const flag = ["--agent-flag", "exclude-cidrs-from=nodes"];
    expect((await ask(["ownership"], [others], ...flag)).err).toContain("needs within: [CIDR]");
    const dir = await mkdtemp(join(tmpdir(), "fairlead-nodes-"));
    const config = join(dir, "config.yaml");
    const multiCNI = { excludeCIDRsFrom: [{ source: "nodes", within: ["10.16.0.0/16"] }] };
    const documents = [
      { apiVersion: "kubeproxy.config.k8s.io/v1alpha1", kind: "KubeProxyConfiguration" },
      { apiVersion: "fairlead.dev/v1alpha1", kind: "FairleadConfiguration", multiCNI },
    ];
    await writeFile(config, documents.map((one) => JSON.stringify(one)).join("\n---\n"));
    const { out } = await ask(["ownership"], [others], "--config", config);
    expect(out).toMatch(/default\/ovn +IPv4 +foreign .*\(Node\/node-b\)/);
    await rm(dir, { recursive: true });
  });
});

describe("rules for services", () => {
  let dir = "";
  let config = "";
  beforeAll(async () => {
    dir = await mkdtemp(join(tmpdir(), "fairlead-rules-"));
    config = join(dir, "config.conf");
    await writeFile(
      config,
      `apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
mode: iptables
---
apiVersion: fairlead.dev/v1alpha1
kind: FairleadConfiguration
multiCNI:
  serviceRules:
    - {annotation: ovn.kubernetes.io/vpc, notIn: [ovn-cluster], ownership: foreign}
    - {namespaceLabel: udn, ownership: foreign}
`,
    );
  });
  afterAll(() => rm(dir, { recursive: true }));

  test("an annotation and a namespace's label decide", async () => {
    const inVPC = service("blue", {
      clusterIPs: ["10.96.1.1"],
      ports: [{ port: 80 }],
      annotations: { "ovn.kubernetes.io/vpc": "blue" },
    });
    const namespace = { apiVersion: "v1", kind: "Namespace", metadata: { name: "udn", labels: { udn: "" } } };
    const inNamespace = service("red", { namespace: "udn", clusterIPs: ["10.96.1.2"], ports: [{ port: 80 }] });
    const { out } = await ask(["ownership"], [inVPC, namespace, inNamespace], "--config", config);
    expect(out).toMatch(/default\/blue +IPv4 +foreign .*rule: annotation ovn\.kubernetes\.io\/vpc not in ovn-cluster/);
    expect(out).toMatch(/udn\/red +IPv4 +foreign .*rule: namespace label udn/);
    expect(out).toMatch(/default\/calico +IPv4 +ours/);
  });
});
