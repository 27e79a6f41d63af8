import { Followed, VirtualClock } from "@fairlead/base/testing";
import { ClusterState } from "@fairlead/core";
import { Networks, type NetworksSettings, networkSource } from "@fairlead/networks";
import { fail, LightApiServer } from "@fairlead/testkit/api-server";
import { testSignal } from "@fairlead/tooling/test-signal";
import { createApiSource } from "@fairlead/watch";
import { afterEach, expect, test } from "vitest";
import { ClusterServices, networkSubscriptions } from "../src/index.ts";

const GROUP = "/apis/kubeovn.io/v1";
const SUBNETS = `${GROUP}/subnets`;
const VPCS = `${GROUP}/vpcs`;
const subnet = (name: string, cidrBlock: string) => ({ metadata: { name }, spec: { cidrBlock } });

const ENDS: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const end of ENDS.splice(0).reverse()) await end();
});

/** Networks that learn from an API server over HTTP; `next` waits until something holds and gives the decision. */
async function learning(prepare: (api: LightApiServer) => void) {
  const api = new LightApiServer();
  prepare(api);
  const server = await api.start();
  ENDS.push(() => api.stop());
  const source = networkSource("kube-ovn-subnets");
  const settings: NetworksSettings = {
    written: { own: [], excluded: [] },
    sources: { excluded: [source], own: [] },
    filter: { mixedServices: "own-endpoints", excludedFrontends: "all", ownershipAnnotation: true },
    debounceMs: 0,
    removalDelayMs: 600_000,
    consentNamespace: "kube-system",
  };
  const networks = new Networks(settings, new VirtualClock());
  const services = new ClusterServices(new ClusterState());
  const problems: string[] = [];
  const changes = new Followed<string>(testSignal());
  const others = networkSubscriptions({
    networks,
    sources: [source],
    consentNamespace: "kube-system",
    onChange: () => changes.add("a change"),
    onProblem: (_source, object, problem) => problems.push(`${object}: ${problem}`),
  });
  const stop = new AbortController();
  const ended = createApiSource({
    connection: { server, credentials: async () => ({ headers: {}, tls: {} }) },
    nodeName: "node-a",
    userAgent: "fairlead-proxy/0.0.0",
    random: () => 0,
  }).run({ others }, stop.signal);
  ENDS.push(() => {
    stop.abort();
    return ended;
  });
  const until = async (holds: () => boolean) => {
    await changes.until(() => holds(), String(holds));
    return networks.decide(services);
  };
  return { api, networks, problems, until, state: () => networks.report().sources[0]?.state };
}

test("1,000 subnets, one of them garbage, and the addresses of nodes", async () => {
  const { api, networks, problems, until, state } = await learning(({ store }) => {
    for (let n = 0; n < 1_000; n++) store.put(SUBNETS, subnet(`s${n}`, `10.${n >>> 8}.${n & 255}.0/24`));
    store.put(SUBNETS, { metadata: { name: "garbage" }, spec: { cidrBlock: [1] } });
    store.put("/api/v1/nodes", {
      metadata: { name: "node-b" },
      status: { addresses: [{ type: "InternalIP", address: "10.0.0.5" }] },
    });
  });
  const first = await until(() => networks.ready && state() === "listed");
  expect(first.excludeCIDRs).toHaveLength(1_000);
  expect(problems).toEqual(['Subnet/garbage: spec.cidrBlock is "[1]"; must be a CIDR']);
  const neutral = () => networks.decide(new ClusterServices(new ClusterState())).neutralAddresses;
  await until(() => neutral().has("10.0.0.5"));
  api.store.put(SUBNETS, subnet("one-more", "10.200.0.0/16"));
  const more = await until(() => networks.decide(new ClusterServices(new ClusterState())).excludeCIDRs.length > 1_000);
  expect(more.excludeCIDRs[0]).not.toBe("10.200.0.0/16");
  expect(more.excludeCIDRs).toContain("10.200.0.0/16");
});

test.each([
  { role: "has Vpcs", state: "listed", cidrs: ["10.16.0.0/16"] },
  { role: "has not", state: "forbidden", forbidden: ["vpcs.kubeovn.io"], cidrs: [] },
])("kube-ovn's Vpcs say which VPC is the default one: the role $role", async ({ state, forbidden, cidrs }) => {
  const learned = await learning((api) => {
    api.store.put(SUBNETS, { metadata: { name: "one" }, spec: { cidrBlock: "10.16.0.0/16", vpc: "main" } });
    api.store.put(VPCS, { metadata: { name: "main" }, status: { default: true } });
    if (forbidden === undefined) return;
    api.intercept(({ path }, response) => path === VPCS && fail(response, 403, "Forbidden", "no") !== undefined);
    api.intercept(({ path }, response) => {
      if (path === GROUP) response.end(JSON.stringify({ resources: [{ name: "vpcs" }] }));
      return path === GROUP;
    });
  });
  const decision = await learned.until(() => learned.networks.ready && learned.state() === state);
  expect(decision.excludeCIDRs).toEqual(cidrs);
  expect(learned.networks.report().sources[0]?.forbidden).toEqual(forbidden);
});

test("a CRD that is not there is absent, and nothing waits", async () => {
  const { networks, until, state } = await learning((api) => {
    api.intercept(({ path }, response) => path === SUBNETS && fail(response, 403, "Forbidden", "no") !== undefined);
    api.intercept(({ path }, response) => path === GROUP && fail(response, 404, "", "") !== undefined);
  });
  const decision = await until(() => networks.ready);
  expect(state()).toBe("absent");
  expect(decision.excludeCIDRs).toEqual([]);
});
