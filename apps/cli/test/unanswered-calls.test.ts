import { fail } from "@fairlead/testkit/api-server";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { allRights, NodeCluster } from "./support/node-cluster.ts";
import { web } from "./support/objects.ts";
import { fairlead } from "./support/run.ts";

const cluster = new NodeCluster();
const CIDRS = ["--cluster-cidr=10.144.0.0/16", "--exclude-cluster-cidr=10.16.0.0/16"];
const HOOKS = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";
const API_SERVICES = "/apis/apiregistration.k8s.io/v1/apiservices";
const ROW = { service: "default/hook", ipFamily: "IPv4", why: "", decidingCIDRs: [], frontends: "none" };
const ours = { ...ROW, ownership: "ours", ownEndpoints: 1, excludedEndpoints: 0 };
const foreign = { ...ROW, ownership: "foreign", ownEndpoints: 0, excludedEndpoints: 1 };

beforeAll(async () => {
  await cluster.start();
  const { store } = cluster.api;
  cluster.api.put([...web("hook", "10.96.0.9", ["10.16.0.5"]), ...web("metrics", "10.96.0.8", ["10.144.0.5"])]);
  const clientConfig = { service: { namespace: "default", name: "hook" } };
  store.put(HOOKS, { metadata: { name: "policy" }, webhooks: [{ clientConfig }] });
  store.put(API_SERVICES, {
    metadata: { name: "v1beta1.metrics.k8s.io" },
    spec: { service: { namespace: "default", name: "metrics" } },
  });
});
afterAll(() => cluster.stop());

beforeEach(() => {
  const labels = { "k8s-app": "kube-proxy" };
  const pods = ["node-a", "node-b"].map((node) => ({ node, name: `proxy-${node}`, labels, container: "kube-proxy" }));
  cluster.set({ pods, programs: {}, endpoint: { "/ownership": { services: [ours, foreign].slice(0, 1) } } });
});

const env = () => ({ KUBECONFIG: cluster.kubeconfig });

/** The next so many requests for API groups of other servers are refused. */
function mayNotListAPIServices(): void {
  cluster.api.intercept(
    ({ path }, response) => path === API_SERVICES && fail(response, 403, "Forbidden", "no") !== undefined,
  );
}

test("ownership names webhooks that nodes get no answer of, and what may not be read", async () => {
  const { out, err } = await fairlead(["ownership", ...CIDRS], { env: env() });
  expect(out).toContain("left unanswered for it");
  expect(out).toContain("  default/hook   ValidatingWebhookConfiguration/policy\n");
  expect(out).not.toContain("default/metrics   APIService");
  expect(err).toMatch(/^configuration: as the options say; not compared: .*\n$/);
  const divided = await fairlead(["ownership", ...CIDRS, "--agent-flag=excluded-frontends=excluded-clients"], {
    env: env(),
  });
  expect(divided.out).not.toContain("left unanswered");
  mayNotListAPIServices();
  const refused = await fairlead(["ownership", ...CIDRS, "-o", "json"], { env: env() });
  expect(refused.err).toContain("may not list apiservices.apiregistration.k8s.io");
  expect(JSON.parse(refused.out).unansweredCalls).toEqual([
    { service: "default/hook", objects: ["ValidatingWebhookConfiguration/policy"] },
  ]);
});

test("ownership asks for nothing of it where nothing is left to others, and of files", async () => {
  const all = await fairlead(["ownership", "--cluster-cidr=10.144.0.0/16"], { env: env() });
  expect(all.out).not.toContain("left unanswered");
  expect(cluster.api.requests.some(({ path }) => path === HOOKS)).toBe(false);
});

test("doctor has them as a check, with what the agents of all nodes decide", async () => {
  const ask = () => fairlead(["doctor", ...CIDRS], { env: env() });
  cluster.api.answerInstead = allRights;
  const { out } = await ask();
  expect(out).toContain("✗ Services that the API server calls: left unanswered: default/hook (ValidatingWebhook");
  expect(out).toContain("✓ decisions of the nodes: 2 decide the same");
  cluster.set({ pods: [], programs: {}, endpoint: {} });
  cluster.api.answerInstead = (request, response) =>
    request.path.endsWith("/pods")
      ? fail(response, 403, "Forbidden", "no") !== undefined
      : allRights(request, response);
  expect((await ask()).out).toContain("? decisions of the nodes: ");
});
