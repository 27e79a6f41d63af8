import { node, type RawObject, service, userDefinedNetwork as udn } from "@fairlead/testkit";
import { describe, expect, test } from "vitest";
import { configFile } from "./support/files.ts";
import { web } from "./support/objects.ts";
import { fairlead } from "./support/run.ts";

const LEARN = [
  ...["--cluster-cidr", "10.144.0.0/16", "--agent-flag", "exclude-cidrs-from=kube-ovn-subnets"],
  ...["--agent-flag", "excluded-frontends=excluded-clients"],
];

const objects: readonly RawObject[] = [
  node("node-a", { addresses: ["10.201.0.10"] }),
  ...web("calico", "10.96.67.75", ["10.144.154.71"]),
  ...web("ovn", "10.96.95.98", ["10.16.0.5"]),
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
    const source = { source: "custom", resource: "addresspools.v1.example.org", fields: ["spec.cidr"] };
    const multiCNI = { excludedFrontends: "excluded-clients", excludeCIDRsFrom: [source] };
    const config = configFile({ multiCNI }, { clusterCIDR: "10.144.0.0/16" });
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
    const answer = await ask(["ownership"], [{ ...pool, kind: "Pool" }, definition], "--config", config);
    expect([answer.err, answer.out]).toEqual(["", out]);
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
    const multiCNI = { excludeCIDRsFrom: [{ source: "nodes", within: ["10.16.0.0/16"] }] };
    const config = configFile({ multiCNI }, {});
    const { out } = await ask(["ownership"], [others], "--config", config);
    expect(out).toMatch(/default\/ovn +IPv4 +foreign .*\(Node\/node-b\)/);
  });
});

describe("rules for services", () => {
  const config = configFile({
    multiCNI: {
      serviceRules: [
        { annotation: "ovn.kubernetes.io/vpc", notIn: ["ovn-cluster"], ownership: "foreign" },
        { namespaceLabel: "udn", ownership: "foreign" },
      ],
    },
  });

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

const ruled = configFile({
  multiCNI: {
    excludedFrontends: "excluded-clients",
    serviceRules: [
      { annotation: "ovn.kubernetes.io/vpc", notIn: [{ defaultVPC: true }], ownership: "foreign" },
      { namespaceLabel: "k8s.ovn.org/primary-user-defined-network", ownership: "foreign" },
    ],
  },
});

function asked(objects: readonly unknown[], ...command: readonly string[]) {
  const stdin = JSON.stringify([node("ovn-worker", { addresses: ["10.201.0.10"] }), ...objects]);
  return fairlead([...command, "-f", "-", "--node", "ovn-worker"], { stdin });
}

describe("a Service in a user-defined network of OVN-Kubernetes", () => {
  const objects = Object.values(udn);
  const NAME = "nad-l3/sample-deployment";

  test("explain has the endpoints there in place of the default network's, and nothing is served here", async () => {
    const { out, err } = await asked(objects, "explain", NAME, "--config", ruled);
    expect(err).toBe("");
    expect(out).toContain(
      "Its pods are in user-defined network l3-network, at 10.128.1.3 (EndpointSlice l3-network-sample-deployment-hgkmw of OVN-Kubernetes",
    );
    expect(out).toMatch(/^ +10\.128\.1\.3:80 +ovn-worker +out: another network serves the service/m);
    expect(out).not.toContain("10.244.1.17");
    expect(out).toMatch(/node-port 31372 +not served here +not served here/);
  });

  test("without the rule explain says what is served here instead, and which rule is missing", async () => {
    const { out } = await asked(objects, "explain", NAME);
    expect(out).toContain("k8s.ovn.org/open-default-ports");
    expect(out).toContain("{namespaceLabel: k8s.ovn.org/primary-user-defined-network, ownership: foreign}");
    expect(out).toMatch(/10\.244\.1\.17:80 +ovn-worker +in: ready/);
  });

  test("ownership names the network and its addresses, as JSON too", async () => {
    const { out } = await asked(objects, "ownership", "--config", ruled);
    expect(out).toMatch(/nad-l3\/sample-deployment +IPv4 +foreign .*user-defined network l3-network: 10\.128\.1\.3/);
    const { services } = JSON.parse((await asked(objects, "ownership", "--config", ruled, "-o", "json")).out);
    expect(services).toMatchObject([
      {
        frontends: "none",
        podNetwork: { kind: "user-defined network", name: "l3-network", addresses: ["10.128.1.3"] },
      },
    ]);
  });

  test("a name with control characters is shown so that it changes no line", async () => {
    const annotations = { "k8s.ovn.org/endpointslice-network": "l3\n\u202enet" };
    const odd = { ...udn.mirrored, metadata: { ...(udn.mirrored["metadata"] as object), annotations } };
    const { out } = await asked([udn.service, udn.slice, odd], "explain", NAME);
    expect(out).toContain('user-defined network "l3\\n\\u202enet", at 10.128.1.3');
  });
});

describe("a Service in a VPC of kube-ovn", () => {
  const inVPC = (vpc: string) => web("blue", "10.96.1.1", ["10.0.1.5"], { "ovn.kubernetes.io/vpc": vpc });
  const vpc = (name: string) => ({
    apiVersion: "kubeovn.io/v1",
    kind: "Vpc",
    metadata: { name },
    status: { default: true },
  });

  test("no node can reach it, with what says so and the rule that is missing", async () => {
    const { out } = await asked(inVPC("blue"), "explain", "blue");
    expect(out).toContain(
      "Its pods are in VPC blue (annotation ovn.kubernetes.io/vpc, the default VPC is ovn-cluster: no node can reach it; what is served here leads nowhere",
    );
    expect((await asked(inVPC("blue"), "ownership")).out).toMatch(/default\/blue .*; its pods are in VPC blue/);
  });

  test("the rule leaves all of it to kube-ovn; the default VPC has the name that its Vpc has", async () => {
    const main = vpc("main");
    const left = await asked([...inVPC("blue"), main], "explain", "blue", "--config", ruled);
    expect(left.out).toContain(
      "the default VPC is main: no node can reach it, and kube-ovn serves the Service inside of it",
    );
    expect(left.out).toMatch(/cluster-ip 10\.96\.1\.1:80 +not served here/);
    const served = await asked([...inVPC("main"), main], "explain", "blue", "--config", ruled);
    expect(served.out).not.toContain("VPC");
  });

  test.each(["", "ovn-cluster"])("%j is the default one", async (name) => {
    expect((await asked(inVPC(name), "explain", "blue")).out).not.toContain("VPC");
  });
});
