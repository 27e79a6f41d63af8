import type { ServiceKey } from "@fairlead/core";
import { type RawObject, service } from "@fairlead/testkit";
import { expect, test } from "vitest";
import { type Change, changedPlans, LiveCluster, UnusableObjects } from "../src/index.ts";
import { LiveObjects, shop } from "./support/objects.ts";
import { setupOf } from "./support/page.ts";

const OWN = "--cluster-cidr=10.144.0.0/16";
const LEARNING = [OWN, "--exclude-cidrs-from=kube-ovn-subnets", "--excluded-frontends=excluded-clients"];

const subnet = (name: string, cidrBlock: string): RawObject => ({
  apiVersion: "kubeovn.io/v1",
  kind: "Subnet",
  metadata: { name },
  spec: { cidrBlock },
});
const OVN = subnet("ovn-default", "10.244.0.0/16");

async function scene(flags: readonly string[], objects: readonly RawObject[] = [], states = {}) {
  const setup = setupOf([...flags]);
  const cluster = new LiveCluster({
    setup,
    nodeName: "node-a",
    now: () => 0,
    unusable: new UnusableObjects(),
    onServices: () => {},
    onNode: () => {},
  });
  const stop = new AbortController();
  const ended = cluster.follow(new LiveObjects([...shop, ...objects], states), stop.signal);
  await cluster.ready;
  return {
    cluster,
    ask: (change: Partial<Change>) =>
      changedPlans(cluster, setup, "node-a", { manifests: "", excludeCIDR: "", configuration: "", ...change }),
    [Symbol.asyncDispose]: async () => {
      stop.abort();
      await ended;
    },
  };
}

const text = (...objects: readonly RawObject[]) => objects.map((one) => JSON.stringify(one)).join("\n---\n");
const services = (
  moves: readonly { readonly service: ServiceKey; readonly before: string; readonly after: string }[],
) => moves.map((one) => `${one.service} ${one.before} ${one.after}`);

test("a Subnet next to ours takes effect, and its services change hands", async () => {
  await using what = await scene(LEARNING);
  const { owners, networks } = await what.ask({ manifests: text(OVN) });
  expect(services(owners)).toEqual(["default/both ours mixed", "default/nginx-ovn ours foreign"]);
  expect(networks?.cidrs).toMatchObject([
    { cidr: "10.244.0.0/16", objects: ["Subnet/ovn-default"], after: "effective" },
  ]);
  // Nothing of it is applied.
  expect(what.cluster.learning?.cidrs().size).toBe(0);
});

test("a Subnet inside ours is held: nothing changes hands, and the line that accepts it is named", async () => {
  await using what = await scene(LEARNING, [OVN]);
  const { owners, services: planned, networks } = await what.ask({ manifests: text(subnet("blue", "10.144.2.0/24")) });
  expect([owners, planned]).toEqual([[], []]);
  expect(networks?.cidrs).toMatchObject([
    {
      cidr: "10.144.2.0/24",
      after: "held",
      why: expect.stringContaining("fairlead ownership --accept 10.144.2.0/24"),
    },
  ]);
  expect(networks?.cidrs[0]).not.toHaveProperty("before");
});

test("with the consent that would accept it, it takes effect", async () => {
  await using what = await scene(LEARNING, [OVN, subnet("blue", "10.144.2.0/24")]);
  const consent: RawObject = {
    apiVersion: "v1",
    kind: "ConfigMap",
    metadata: { name: "fairlead-networks", namespace: "kube-system" },
    data: { accepted: "- {cidr: 10.144.2.0/24, by: alice}" },
  };
  const { owners, networks } = await what.ask({ manifests: text(consent) });
  expect(networks?.cidrs).toMatchObject([{ cidr: "10.144.2.0/24", before: "held", after: "effective" }]);
  expect(services(owners)).toEqual(["shop/web ours mixed"]);
});

test("a Subnet over the service CIDR is refused", async () => {
  const range = { apiVersion: "networking.k8s.io/v1", kind: "ServiceCIDR", metadata: { name: "kubernetes" } };
  await using what = await scene(LEARNING, [{ ...range, spec: { cidrs: ["10.96.0.0/12"] } }]);
  const { networks } = await what.ask({ manifests: text(subnet("typo", "10.96.0.0/16")) });
  expect(networks?.cidrs).toMatchObject([{ cidr: "10.96.0.0/16", after: "refused" }]);
});

test("an object takes the place of the one of its name, also where it no longer defines a CIDR", async () => {
  await using what = await scene(LEARNING, [OVN]);
  const { owners, networks } = await what.ask({ manifests: text(subnet("ovn-default", "10.250.0.0/16")) });
  expect(services(owners)).toEqual(["default/both mixed ours", "default/nginx-ovn foreign ours"]);
  expect(networks?.cidrs).toMatchObject([
    { cidr: "10.250.0.0/16", after: "effective" },
    { cidr: "10.244.0.0/16", before: "effective" },
  ]);
});

test("a configuration that learns is asked of the cluster as it is, whatever is followed", async () => {
  await using what = await scene([OWN], [OVN]);
  const configuration = `
apiVersion: fairlead.dev/v1alpha1
kind: FairleadConfiguration
multiCNI:
  excludeCIDRsFrom: [{ source: kube-ovn-subnets }]
  excludedFrontends: excluded-clients
---
apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
clusterCIDR: 10.144.0.0/16
`;
  const { owners, networks, setup } = await what.ask({ configuration });
  expect(services(owners)).toEqual(["default/both ours mixed", "default/nginx-ovn ours foreign"]);
  expect(networks?.cidrs).toMatchObject([{ cidr: "10.244.0.0/16", after: "effective" }]);
  expect(setup.config.multiCNI.excludedFrontends).toBe("excluded-clients");
});

test("where the server has no such resource, what is pasted counts as if it had", async () => {
  await using what = await scene(LEARNING, [], { Subnet: "absent" });
  const { networks } = await what.ask({ manifests: text(OVN) });
  expect(networks?.cidrs).toMatchObject([{ cidr: "10.244.0.0/16", after: "effective" }]);
});

test("what may not be read is named", async () => {
  await using what = await scene(LEARNING, [], { Subnet: "forbidden" });
  const { networks } = await what.ask({ excludeCIDR: "10.88.0.0/16" });
  expect(networks?.unread).toEqual(["kube-ovn-subnets: forbidden"]);
});

test("without anything that learns, a CIDR and a Service: only what they are about changes", async () => {
  await using what = await scene([OWN, "--exclude-cluster-cidr=10.244.0.0/16"]);
  const cidr = await what.ask({ excludeCIDR: "10.88.0.0/16" });
  expect([services(cidr.owners), cidr.services, cidr.networks]).toEqual([
    ["default/stray ours foreign"],
    ["default/stray"],
    undefined,
  ]);
  const added = service("new", { clusterIPs: ["10.96.0.99"], ports: [{ port: 80 }] });
  const came = await what.ask({ manifests: text(added) });
  expect([came.owners, came.services]).toEqual([[], ["default/new"]]);
});

test.each<[string, Partial<Change>, RegExp]>([
  ["a CIDR", { excludeCIDR: "10.0.0.0/33" }, /^CIDR 10\.0\.0\.0\/33: /],
  ["a configuration", { configuration: "kind: Pod\napiVersion: v1" }, /configuration/],
  [
    "a field of one",
    { configuration: "apiVersion: fairlead.dev/v1alpha1\nkind: FairleadConfiguration\nmultiCNI: 7" },
    /multiCNI/,
  ],
  ["manifests", { manifests: "kind: [" }, /^manifests/],
  ["an object that is not asked for", { manifests: text(OVN) }, /neither a Service nor an EndpointSlice/],
])("%s that cannot be used is answered with what would be right", async (_what, change, message) => {
  await using what = await scene([OWN]);
  await expect(what.ask(change)).rejects.toThrow(message);
});
