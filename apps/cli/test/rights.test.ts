import { join } from "node:path";
import { fail } from "@fairlead/testkit/api-server";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { forbiddenIn, mayNot } from "../src/cluster/api-error.ts";
import { ownFolder } from "./support/files.ts";
import { AGENT_POD, NodeCluster } from "./support/node-cluster.ts";
import { fairlead } from "./support/run.ts";

const cluster = new NodeCluster();
beforeAll(async () => {
  await cluster.start();
  for (const namespace of ["shop", "other"]) {
    cluster.api.store.put("/api/v1/services", {
      metadata: { name: "web", namespace },
      spec: { clusterIP: namespace === "shop" ? "10.96.0.1" : "10.96.0.2", ports: [{ port: 80 }] },
    });
  }
  cluster.api.store.put("/api/v1/nodes", { metadata: { name: "node-a" } });
});
afterAll(() => cluster.stop());
beforeEach(() => {
  cluster.api.answerInstead = () => false;
});

/** As k8s.io/apiserver says it. */
const message = (resource: string, namespace?: string, group = "") =>
  `${resource} is forbidden: User "eve" cannot list resource "${resource}" in API group "${group}" ` +
  (namespace === undefined ? "at the cluster scope" : `in the namespace "${namespace}"`);

/** Refuses what the path ends with, also in namespaces other than the allowed one. */
function allowOnly(allowed: readonly string[]): void {
  cluster.api.answerInstead = ({ path }, response) => {
    if (!path.startsWith("/api") || allowed.includes(path)) return false;
    const [, , namespace, resource = path.slice(path.lastIndexOf("/") + 1)] =
      /(namespaces\/([^/]+)\/)([^/]+)/.exec(path) ?? [];
    fail(response, 403, "Forbidden", message(resource, namespace));
    return true;
  };
}

const SERVICES = "/api/v1/services";
const SLICES = "/apis/discovery.k8s.io/v1/endpointslices";
const ask = (...line: readonly string[]) =>
  fairlead([...line, "--node", "node-a", "--cluster-cidr", "10.144.0.0/16"], {
    env: { KUBECONFIG: cluster.kubeconfig },
  });

describe("a reader with narrow rights", () => {
  test("without nodes plans, and says what is missing and which rule would give it", async () => {
    allowOnly([SERVICES, SLICES]);
    const { code, out, err } = await ask("explain", "shop/web");
    expect(out).toContain("shop/web on node-a");
    expect(err).toContain(
      "planned without zone and addresses of the node (--node-address gives them): user eve may not list nodes in the whole " +
        'cluster; a ClusterRole with this rule allows it: {apiGroups: [""], resources: [nodes], verbs: [list, watch]}\n',
    );
    expect(code).toBe(0);
  });

  test("of one namespace asks for that one only", async () => {
    allowOnly(["/api/v1/namespaces/shop/services", "/apis/discovery.k8s.io/v1/namespaces/shop/endpointslices"]);
    const { code, out, err } = await ask("ownership", "-n", "shop");
    expect(out).toMatch(/^shop\/web /m);
    expect(out).not.toContain("other/web");
    expect(err).toContain(
      "only services of namespace shop are known: user eve may not list services in the whole cluster",
    );
    expect(code).toBe(0);
  });

  test("learns what may not be read, and not that the server does not answer", async () => {
    allowOnly([]);
    const { code, out, err } = await ask("ownership");
    expect(out).toBe("");
    expect(err).toMatch(
      /user eve may not list (?:services|endpointslices) in the whole cluster; a ClusterRole with this rule/,
    );
    expect(err).not.toContain("does not answer: 403");
    expect(code).toBe(3);
  });
});

describe("without nodes", () => {
  const agent = { "/proxyMode": "iptables", "/metrics": "", "/livez": "ok", "/ownership": { services: [] } };
  const asked = (command: string, ...more: readonly string[]) =>
    fairlead([command, ...more, "--mode", "iptables"], { env: { KUBECONFIG: cluster.kubeconfig } });

  test.each([
    ["status", []],
    ["verify", ["--all-nodes"]],
  ])("%s looks at the nodes that agents run on", async (command, more) => {
    cluster.set({ pods: [AGENT_POD], programs: {}, endpoint: agent });
    allowOnly([SERVICES, SLICES, "/api/v1/pods"]);
    const { out, err } = await asked(command, ...more);
    expect(err).toContain("only nodes with an agent are known: user eve may not list nodes in the whole cluster; ");
    expect(`${out}${err}`).toContain("node-a");
  });

  test("nor pods, status says which right is missing", async () => {
    allowOnly([SERVICES, SLICES]);
    const { out, err, code } = await asked("status");
    expect(err).toMatch(/^user eve may not list nodes in the whole cluster; a ClusterRole with this rule allows it: /);
    expect({ out, code }).toEqual({ out: "", code: 3 });
  });

  test("sysdump names what is not in its archive, and the rule that is missing", async () => {
    cluster.set({ pods: [], programs: {}, endpoint: {} });
    allowOnly([SERVICES, SLICES]);
    const { err, code } = await asked("sysdump", "--output-file", join(ownFolder(), "dump.tar.gz"));
    expect(err).toMatch(
      /^not in the archive: nodes: user eve may not list nodes in the whole cluster; a ClusterRole /m,
    );
    expect(code).toBe(1);
  });
});

test.each([
  [message("pods/exec", "kube-system"), "in namespace kube-system; a Role with this rule"],
  [message("endpointslices", undefined, "discovery.k8s.io"), 'apiGroups: ["discovery.k8s.io"]'],
  [
    message("namespaces", "fairlead-connectivity").replaceAll("list", "get"),
    'user eve may not get namespaces in the whole cluster; a ClusterRole with this rule allows it: {apiGroups: [""], resources: [namespaces], verbs: [get]}',
  ],
  [
    message("nodes").replaceAll("list", "watch"),
    'user eve may not list nodes in the whole cluster; a ClusterRole with this rule allows it: {apiGroups: [""], resources: [nodes], verbs: [list, watch]}',
  ],
])("%s", (said, part) => {
  const found = forbiddenIn(said);
  expect(found && mayNot(found)).toContain(part);
});

test("other words do not name a missing rule", () => {
  expect(forbiddenIn("no healthy upstream")).toBeUndefined();
});
