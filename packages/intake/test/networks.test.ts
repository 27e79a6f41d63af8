import { Followed, settled, VirtualClock } from "@fairlead/base/testing";
import type { AgentConfig } from "@fairlead/config";
import { ClusterState, decodeEndpointSlice, decodeService, type ServiceKey } from "@fairlead/core";
import {
  Networks,
  type NetworksDecision,
  type NetworksSettings,
  NOTHING_KNOWN,
  networkSource,
  sourceKinds,
} from "@fairlead/networks";
import { endpointSlice, service } from "@fairlead/testkit";
import { fail, LightApiServer } from "@fairlead/testkit/api-server";
import { testSignal } from "@fairlead/tooling/test-signal";
import { createApiSource } from "@fairlead/watch";
import { afterEach, describe, expect, test } from "vitest";
import {
  ClusterServices,
  filterSettings,
  LiveNetworks,
  networkSubscriptions,
  networksSettings,
  ruleAnnotations,
} from "../src/index.ts";
import { configOf, filterOf } from "./support.ts";

test("every source that there is can be configured, and no other", () => {
  const names = Object.keys(sourceKinds);
  const { excludeCIDRsFrom } = configOf(`--exclude-cidrs-from=${names.join(",")}`).multiCNI;
  expect(excludeCIDRsFrom.map(({ source }) => source)).toEqual(names);
  expect(() => configOf("--exclude-cidrs-from=others")).toThrow(`must be one of ${names.join(", ")}`);
});

test("sources become settings, next to the written CIDRs", () => {
  const config = configOf(
    "--cluster-cidr=10.144.0.0/16",
    "--exclude-cluster-cidr=10.17.0.0/16",
    "--exclude-cidrs-from=kube-ovn-subnets",
    "--cluster-cidr-from=calico-ippools",
  );
  const settings = networksSettings(config, filterOf(config));
  expect(settings).toMatchObject({
    written: { own: ["10.144.0.0/16"], excluded: ["10.17.0.0/16"] },
    debounceMs: 1_000,
    consentNamespace: "kube-system",
  });
  expect(settings?.sources.excluded.map(({ id }) => id)).toEqual(["kube-ovn-subnets"]);
  expect(settings?.sources.own.map(({ id }) => id)).toEqual(["calico-ippools"]);
});

test("without sources nothing is learned, and the memory's scope is as ever", () => {
  const config = configOf("--exclude-cluster-cidr=10.17.0.0/16");
  expect(networksSettings(config, filterOf(config))).toBeUndefined();
  expect(filterOf(config)).not.toHaveProperty("sources");
});

const withRules = (serviceRules: AgentConfig["multiCNI"]["serviceRules"], config = configOf()): AgentConfig => ({
  ...config,
  multiCNI: { ...config.multiCNI, serviceRules },
});

test("rules follow what they ask for, and are in the memory's scope", () => {
  const annotation = { annotation: "ovn.kubernetes.io/vpc", notIn: ["ovn-cluster"], ownership: "foreign" } as const;
  const byAnnotation = withRules([annotation]);
  expect(networksSettings(byAnnotation, filterOf(byAnnotation))).toMatchObject({ sources: { own: [], excluded: [] } });
  expect(ruleAnnotations(byAnnotation)).toEqual(new Set(["ovn.kubernetes.io/vpc"]));
  const label = { namespaceLabel: "udn", ownership: "foreign" } as const;
  const byBoth = withRules([annotation, label]);
  expect(networksSettings(byBoth, filterOf(byBoth))).toMatchObject({
    rules: [annotation, label],
    sources: { own: [], excluded: [] },
  });
  expect(filterOf(byBoth).sources).toEqual([
    "rule:annotation ovn.kubernetes.io/vpc not in ovn-cluster: foreign",
    "rule:namespace label udn: foreign",
  ]);
});

test("the memory's scope follows the sources that are configured", () => {
  expect(filterOf(configOf("--exclude-cidrs-from=flannel", "--cluster-cidr-from=calico-ippools")).sources).toEqual([
    "excluded:flannel",
    "own:calico-ippools",
  ]);
});

test("a custom source that has not its form is an error that names the field", () => {
  const config = configOf();
  const custom = { source: "custom", resource: "ippools", fields: ["spec.cidr"] } as const;
  const wrong = { ...config, multiCNI: { ...config.multiCNI, excludeCIDRsFrom: [custom] } };
  expect(filterSettings(wrong)).toEqual({
    ok: false,
    errors: [
      'excludeCIDRsFrom: "ippools" must be plural.version.group, such as ippools.v1.crd.projectcalico.org, or configmaps.v1 of the core group',
    ],
  });
});

describe("within", () => {
  const settingsOf = (multiCNI: Partial<AgentConfig["multiCNI"]>) => {
    const config = configOf("--cluster-cidr=10.144.0.0/16");
    return filterSettings({ ...config, multiCNI: { ...config.multiCNI, ...multiCNI } });
  };

  test("is part of the settings, not of the memory's scope", () => {
    const config = configOf("--cluster-cidr=10.144.0.0/16");
    const excludeCIDRsFrom = [{ source: "kube-ovn-subnets", within: ["10.16.0.0/12"] }] as const;
    const given = { ...config, multiCNI: { ...config.multiCNI, excludeCIDRsFrom } };
    expect(networksSettings(given, filterOf(given))?.within).toEqual(new Map([["kube-ovn-subnets", ["10.16.0.0/12"]]]));
    expect(filterOf(given).sources).toEqual(["excluded:kube-ovn-subnets"]);
  });

  test.each([
    ["10.16.0.1/12", "excludeCIDRsFrom[0].within: 10.16.0.1/12: has host bits set; write 10.16.0.0/12"],
    ["0.0.0.0/0", "excludeCIDRsFrom[0].within: 0.0.0.0/0: covers every IPv4 address"],
    ["10.144.0.0/15", "excludeCIDRsFrom[0].within: 10.144.0.0/15: covers all of --cluster-cidr 10.144.0.0/16"],
    ["ten", "excludeCIDRsFrom[0].within: ten: must be a CIDR"],
  ])("%s is an error as in a written list", (cidr, error) => {
    const found = settingsOf({ excludeCIDRsFrom: [{ source: "spiderpool", within: [cidr] }] });
    expect(found).toEqual({ ok: false, errors: [expect.stringContaining(error)] });
  });

  test("the same CIDR on both sides is an error that names both fields", () => {
    const found = settingsOf({
      excludeCIDRsFrom: [{ source: "kube-ovn-subnets", within: ["10.16.0.0/16"] }],
      clusterCIDRsFrom: [{ source: "calico-ippools", within: ["10.16.0.0/16"] }],
    });
    expect(found).toEqual({
      ok: false,
      errors: [
        "excludeCIDRsFrom[0].within: 10.16.0.0/16: is also in clusterCIDRsFrom[0].within; give it to one of the two networks",
      ],
    });
  });

  test.each(["nodes", "cilium-nodes", "ovn-kubernetes-nodes"] as const)(
    "%s needs one: nodes write its objects",
    (source) => {
      const found = settingsOf({ clusterCIDRsFrom: [{ source }] });
      expect(found).toEqual({
        ok: false,
        errors: [expect.stringContaining(`clusterCIDRsFrom[0]: ${source}: needs within`)],
      });
      expect(settingsOf({ clusterCIDRsFrom: [{ source, within: ["10.144.0.0/16"] }] }).ok).toBe(true);
    },
  );
});

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

const WEB: ServiceKey = "default/web";

/** A decision that waits for the test after each of its steps. */
function stepped() {
  const clock = new VirtualClock();
  const state = new ClusterState();
  const waiting: (() => void)[] = [];
  const networks = new LiveNetworks({
    setup: {
      settings: {
        written: { own: [], excluded: [] },
        sources: { own: [], excluded: [networkSource("kube-ovn-subnets")] },
        filter: { mixedServices: "own-endpoints", excludedFrontends: "all", ownershipAnnotation: true },
        debounceMs: 1_000,
        removalDelayMs: 600_000,
        consentNamespace: "kube-system",
      },
      known: NOTHING_KNOWN,
    },
    state,
    clock,
    onProblem: () => {},
    onDecided: () => {},
    keep: () => {},
    slicing: { budget: 0, turn: () => new Promise((resolve) => void waiting.push(resolve)) },
  });
  const move = (address: string) => {
    const slice = endpointSlice("web-1", {
      service: "web",
      family: "IPv4",
      ports: [{ port: 80 }],
      endpoints: [{ address }],
    });
    const { object } = decodeEndpointSlice(slice);
    if (object !== undefined) state.upsertSlice(object);
    return state.takeDirty().services;
  };
  const step = async () => {
    waiting.shift()?.();
    await settled();
    return waiting.length > 0;
  };
  return { clock, state, networks, move, step, waiting };
}

test("a service whose endpoints move while a decision is made is planned again under it", async () => {
  const { clock, state, networks, move, step } = stepped();
  const { object } = decodeService(service("web", { clusterIPs: ["10.96.0.10"], ports: [{ port: 80 }] }));
  if (object !== undefined) state.upsertService(object);
  move("10.144.0.5");
  const decisions: NetworksDecision[] = [];
  networks.start({ onFirst: () => {}, onChange: (decision) => void decisions.push(decision) });
  const [subnets, vpcs] = networks.subscriptions;
  const key = "/ovn-default" as const;
  subnets?.onChange({
    type: "upsert",
    key,
    object: { metadata: { name: "ovn-default" }, spec: { cidrBlock: "10.16.0.0/16" } },
  });
  subnets?.onState?.("listed");
  vpcs?.onState?.("absent");
  networks.subscriptions.find(({ resource }) => resource.plural === "configmaps")?.onState?.("listed");
  networks.synced("services");
  networks.synced("endpointSlices");
  await clock.advance(0);
  await settled();
  networks.takeConcerned();
  // The index is made and the CIDR looked at; then a sync plans the endpoint's move by what was in force before.
  for (let steps = 0; steps < 3; steps++) expect(await step()).toBe(true);
  networks.syncBegins();
  const seen = networks.see(move("10.16.0.5"));
  while (await step());
  await seen;
  expect(decisions.map(({ touched }) => [...touched])).toEqual([[]]);
  expect(networks.takeConcerned()).toEqual(new Set([WEB]));
});
