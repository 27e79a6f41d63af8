import { endpointSlice, type RawObject, service } from "@fairlead/testkit";
import { fail } from "@fairlead/testkit/api-server";
import { afterAll, beforeAll, expect, test } from "vitest";
import { NodeCluster } from "./support/node-cluster.ts";
import { fairlead } from "./support/run.ts";

const POOL = { apiVersion: "crd.projectcalico.org/v1", kind: "IPPool", metadata: { name: "default" } };
const subnet = (name: string, cidrBlock: string) => ({
  apiVersion: "kubeovn.io/v1",
  kind: "Subnet",
  metadata: { name },
  spec: { cidrBlock },
});
const objects: readonly RawObject[] = [
  { ...POOL, spec: { cidr: "10.144.0.0/16" } },
  subnet("vpn", "10.144.8.0/22"),
  subnet("vpn2", "10.144.12.0/22"),
  subnet("ovn-default", "10.16.0.0/16"),
  service("moved", { clusterIPs: ["10.96.0.9"], ports: [{ port: 80 }] }),
  endpointSlice("moved-1", {
    service: "moved",
    family: "IPv4",
    ports: [{ port: 80 }],
    endpoints: [{ address: "10.144.8.5", nodeName: "node-b" }],
  }),
];
const LEARNING = ["exclude-cidrs-from=kube-ovn-subnets", "cluster-cidr-from=calico-ippools", "excluded-frontends=all"];

/** As an agent of before has it, which asked each node for consent. */
const learned = (cidr: string, object: string, stage = "effective") => {
  const counts =
    stage === "effective" ? { since: "2030-01-02T00:00:00.000Z" } : { why: "10 of 12 services would turn" };
  return { cidr, side: "excluded", source: "kube-ovn-subnets", objects: [object], stage, ...counts };
};
const before = {
  services: [],
  networks: {
    sources: [{ source: "kube-ovn-subnets", side: "excluded", state: "listed" }],
    cidrs: [
      learned("10.16.0.0/16", "Subnet/ovn-default"),
      learned("10.144.8.0/22", "Subnet/vpn"),
      learned("10.144.12.0/22", "Subnet/vpn2", "held"),
      learned("10.18.0.0/16", "Subnet/gone"),
    ],
    heldBack: 10,
  },
};

const cluster = new NodeCluster();
beforeAll(() => cluster.start());
afterAll(() => cluster.stop());

function agents(endpoint: Record<string, unknown>): void {
  const labels = { "k8s-app": "kube-proxy" };
  const pods = ["node-a", "node-b"].map((node) => ({ node, name: `proxy-${node}`, labels, container: "kube-proxy" }));
  cluster.set({ pods, programs: {}, endpoint });
}

function accept(...args: readonly string[]) {
  const flags = LEARNING.map((flag) => `--agent-flag=${flag}`);
  return fairlead(["ownership", "-f", "-", ...flags, "--accept", ...args], {
    stdin: JSON.stringify(objects),
    env: { KUBECONFIG: cluster.kubeconfig, USER: "alice" },
  });
}

const written = () => JSON.stringify(cluster.api.store.get("/api/v1/configmaps", "kube-system/fairlead-networks"));

test("what agents of before let take effect is accepted before the upgrade, or its within is to be written", async () => {
  agents({ "/ownership": before });
  const shown = await accept("in-effect");
  expect(shown.out).toBe(
    [
      "In effect now, and held without consent:",
      "  10.144.8.0/22 of Subnet/vpn",
      "Services that consent keeps where they are:",
      "  default/moved IPv4",
      "In place of consent, in the configuration of the agents:",
      "  kube-ovn-subnets: within: [10.144.12.0/22, 10.144.8.0/22, 10.16.0.0/16]",
      "Kept until the removal delay is over, since no object defines them anymore:",
      "  10.18.0.0/16 of Subnet/gone",
      "Nothing is written; --yes adds 10.144.8.0/22 to ConfigMap kube-system/fairlead-networks.",
      "",
    ].join("\n"),
  );
  expect(written()).toBeUndefined();
  expect((await accept("in-effect", "--yes")).out).toContain("Written: 10.144.8.0/22 is in accepted of ConfigMap");
  expect(written()).toContain("10.144.8.0/22");
  expect(written()).not.toContain("10.144.12.0/22");
});

test("agents that let nothing take effect which needs consent have nothing to accept", async () => {
  agents({ "/ownership": { services: [] } });
  const { out, code } = await accept("in-effect", "--yes");
  expect([code, out]).toEqual([0, "All that running agents let take effect needs no consent.\n"]);
});

test("agents that do not answer are named, and nothing is written", async () => {
  agents({});
  const { err, code } = await accept("in-effect", "--yes");
  expect(code).toBe(3);
  expect(err).toContain("node-a: its agent does not answer");
  expect(err).toContain("--accept in-effect: no agent answers");
  cluster.api.intercept(
    ({ path }, response) => path.includes("/pods") && fail(response, 403, "Forbidden", "no") !== undefined,
  );
  expect((await accept("in-effect")).code).toBe(3);
});

test.each([[["--on", "node-a", "--accept"]], [["--accept", "--on", "node-a"]], [["--live", "--accept"]]])(
  "the way of before, %j, names the new one",
  async (args) => {
    const { code, err } = await fairlead(["ownership", ...args]);
    expect(code).toBe(2);
    expect(err).toContain("--accept: agents take no consent of their own anymore: fairlead ownership --config FILE");
  },
);
