import { renderRule } from "@fairlead/netfilter";
import { endpointSlice, goldenNode, service, TestCluster } from "@fairlead/testkit";
import { type SlotState, slotObjects, World, webState } from "@fairlead/testkit/histories";
import { describe, expect, onTestFinished, test } from "vitest";
import { createIpvsBackend, requiredSysctls } from "../src/index.ts";
import { FakeNode } from "./support/fake-node.ts";
import { live, plannerOptions } from "./support/world.ts";

type Options = Partial<Parameters<typeof plannerOptions>[1]>;

function rules(node: FakeNode, table: "nat" | "filter", chain: string): string[] {
  return (node.rules.IPv4.table(table).chains.get(chain)?.rules ?? []).map(renderRule);
}

async function masquerading(options: Options): Promise<string[]> {
  const made = await live([], { world: new World(plannerOptions(goldenNode(false), options)) });
  await made.change([[1, webState()]]);
  return rules(made.node, "nat", "KUBE-SERVICES").filter((rule) => /KUBE-MARK-MASQ|KUBE-EXT-/.test(rule));
}

const REMARK = '-m comment --comment "Kubernetes service cluster ip + port for masquerade purpose"';

describe("which clients are masqueraded on the way to a cluster IP", () => {
  test.each<[string, Options, string]>([
    ["all senders", { masqueradeAll: true }, `${REMARK} -m set --match-set KUBE-CLUSTER-IP dst,dst -j KUBE-MARK-MASQ`],
    [
      "all but pods of a bridge",
      { detectors: { IPv4: { kind: "bridge", interface: "cni0" } } },
      `! -i cni0 ${REMARK} -m set --match-set KUBE-CLUSTER-IP dst,dst -j KUBE-MARK-MASQ`,
    ],
    [
      "all but pods of some interfaces",
      { detectors: { IPv4: { kind: "interface-prefix", prefix: "cali" } } },
      `! -i cali+ ${REMARK} -m set --match-set KUBE-CLUSTER-IP dst,dst -j KUBE-MARK-MASQ`,
    ],
    [
      "where pods cannot be recognized, what comes from service addresses",
      { detectors: {} },
      `${REMARK} -m set --match-set KUBE-CLUSTER-IP src,dst -j KUBE-MARK-MASQ`,
    ],
  ])("%s", async (_who, options, rule) => {
    expect(await masquerading(options)).toEqual([rule]);
  });

  test("all but those of several CIDRs: by a chain of their own", async () => {
    const cidrs = ["10.144.0.0/16", "10.244.0.0/16"];
    const [rule = ""] = await masquerading({ detectors: { IPv4: { kind: "cidrs", cidrs } } });
    const chain = /-j (KUBE-EXT-\w{16})$/.exec(rule)?.[1] ?? "";
    const made = await live([], {
      world: new World(plannerOptions(goldenNode(false), { detectors: { IPv4: { kind: "cidrs", cidrs } } })),
    });
    expect(rules(made.node, "nat", chain)).toEqual([
      "-s 10.144.0.0/16 -j RETURN",
      "-s 10.244.0.0/16 -j RETURN",
      "-j KUBE-MARK-MASQ",
    ]);
    await made.backend.cleanup();
    expect([...made.node.rules.IPv4.table("nat").chains.keys()].filter((name) => name.startsWith("KUBE-"))).toEqual([]);
  });
});

test("a load balancer whose source ranges leave the node out is barred to it", async () => {
  const world = new World(plannerOptions(goldenNode(false), { nodeIPs: { IPv4: "192.0.2.77" } }));
  const made = await live([[[1, webState({ type: "LoadBalancer", ranges: true })]]], { world });
  expect(rules(made.node, "filter", "KUBE-IPVS-OUT-FILTER")).toEqual([
    "-s 203.0.113.1/32 -m ipvs --vproto 6 --vaddr 203.0.113.1 --vport 80 -j DROP",
  ]);
  await made.change([[1, webState({ type: "LoadBalancer" })]]);
  expect(rules(made.node, "filter", "KUBE-IPVS-OUT-FILTER")).toEqual([]);
});

describe("schedulers", () => {
  const servers = (node: FakeNode) => node.servers.servers().map(({ scheduler, flags }) => [scheduler, ...flags]);

  test("the operator's, with what it needs", async () => {
    const made = await live([[[1, webState()]]], { options: { scheduler: "mh" } });
    expect(servers(made.node)).toEqual([["mh", "mh-port"]]);
  });

  test.each([
    ["sh", [["sh"]], []],
    ["round-robin", [["rr"]], [/annotation fairlead.dev\/ipvs-scheduler is "round-robin"; it must be one of rr, wrr/]],
    ["sed", [["rr"]], [/no IPVS scheduler sed \(modprobe ip_vs_sed\)/]],
  ])("a service's own: %s", async (asked, expected, problems) => {
    const node = new FakeNode();
    const reported: string[] = [];
    const cluster = new TestCluster(plannerOptions(goldenNode(false)));
    const [web, slice] = slotObjects(1, webState());
    if (web === undefined || slice === undefined) throw new Error("no objects");
    const annotations = { "fairlead.dev/ipvs-scheduler": asked };
    cluster.put({ ...web, metadata: { ...web.metadata, annotations } }, slice);
    cluster.replan();
    const backend = createIpvsBackend(node.port("IPv4"), {
      onProblem: (problem) => reported.push(problem),
      loadScheduler: async (scheduler) => scheduler !== "sed",
    });
    await backend.sync(cluster.plan("IPv4"));
    await backend.sync(cluster.plan("IPv4"));
    expect(servers(node)).toEqual(expected);
    expect(reported).toEqual(problems.map((problem) => expect.stringMatching(problem)));
  });

  test("a service that is balanced by its clients' addresses hashes them without their ports", async () => {
    const node = new FakeNode();
    const cluster = new TestCluster(plannerOptions(goldenNode(false)));
    const [web, slice] = slotObjects(1, webState());
    if (web === undefined || slice === undefined) throw new Error("no objects");
    cluster.put(
      { ...web, metadata: { ...web.metadata, annotations: { "fairlead.dev/balance": "source-hash" } } },
      slice,
    );
    cluster.replan();
    const backend = createIpvsBackend(node.port("IPv4"), { loadScheduler: async () => true });
    await backend.sync(cluster.plan("IPv4"));
    expect(servers(node)).toEqual([["mh"]]);
  });

  test.each([
    ["rr", undefined, "wrr"],
    ["lc", undefined, "wlc"],
    ["sed", undefined, "sed"],
    ["sed", "rr", "wrr"],
  ])(
    "the default %s and the annotation %s heed weights by %s, and a change of these edits destinations",
    async (scheduler, asked, used) => {
      const node = new FakeNode();
      const cluster = new TestCluster(plannerOptions(goldenNode(false)));
      const put = (weights: SlotState["weights"]) => {
        const [web, ...slices] = slotObjects(1, webState({ endpoints: ["ready", "none", "ready", "ready"], weights }));
        if (web === undefined) throw new Error("no Service");
        const annotations = asked === undefined ? {} : { "fairlead.dev/ipvs-scheduler": asked };
        cluster.put({ ...web, metadata: { ...web.metadata, annotations } }, ...slices);
        return cluster.replan().changes.get("IPv4");
      };
      const weights = () => node.servers.servers().map(({ destinations }) => destinations.map(({ weight }) => weight));
      put([9, 1, 0]);
      const backend = createIpvsBackend(node.port("IPv4"), { scheduler, loadScheduler: async () => true });
      await backend.sync(cluster.plan("IPv4"));
      expect(servers(node)).toEqual([[used]]);
      expect(weights()).toEqual([[18, 1, 1]]);
      const change = put([1, 1, 0]);
      if (change === undefined) throw new Error("no change");
      await backend.apply(cluster.plan("IPv4"), change);
      expect(weights()).toEqual([[2, 1, 1]]);
      expect(await backend.difference(cluster.plan("IPv4"))).toBeUndefined();
    },
  );

  test("that are none are refused", () => {
    expect(() => createIpvsBackend(new FakeNode().port("IPv4"), { scheduler: "fast" })).toThrow(
      'ipvs.scheduler is "fast"; it must be one of rr, wrr, lc, wlc, lblc, lblcr, sh, dh, sed, nq, mh',
    );
  });
});

test("two services want one server: the explicit address wins over the node port, in either order", async () => {
  const ports = [{ name: "main", port: 30_002, targetPort: 8080 }];
  const external = [
    service("other", { clusterIPs: ["10.96.9.9"], externalIPs: ["10.201.0.10"], ports }),
    endpointSlice("other", {
      service: "other",
      family: "IPv4",
      ports: [{ name: "main", port: 8080 }],
      endpoints: [{ address: "10.144.0.8" }],
    }),
  ];
  for (const order of ["port first", "address first"]) {
    const node = new FakeNode();
    const cluster = new TestCluster(plannerOptions(goldenNode(false), { nodeAddresses: { IPv4: ["10.201.0.10"] } }));
    const backend = createIpvsBackend(node.port("IPv4"));
    await backend.sync(cluster.plan("IPv4"));
    const batches = [slotObjects(1, webState({ type: "NodePort" })), external];
    for (const batch of order === "port first" ? batches : batches.toReversed()) {
      cluster.put(...batch);
      const change = cluster.replan().changes.get("IPv4");
      if (change !== undefined) await backend.apply(cluster.plan("IPv4"), change);
    }
    const contested = node.servers.servers().find(({ address, port }) => address === "10.201.0.10" && port === 30_002);
    const open = contested?.destinations.filter(({ weight }) => weight > 0);
    expect(
      open?.map(({ address }) => address),
      order,
    ).toEqual(["10.144.0.8"]);
  }
});

describe("sysctls", () => {
  const names = (facts: Parameters<typeof requiredSysctls>[0]) =>
    requiredSysctls(facts).map(({ name, value }) => `${name}=${value}`);
  const common = [
    "net.ipv4.vs.conntrack=1",
    "net.ipv4.vs.expire_nodest_conn=1",
    "net.ipv4.vs.expire_quiescent_template=1",
    "net.ipv4.ip_forward=1",
  ];

  test("of a kernel of today", () => {
    expect(names({ strictARP: false, kernel: { major: 6, minor: 1 } })).toEqual(common);
  });

  test.each([
    [{ major: 4, minor: 0 }, false],
    [{ major: 4, minor: 1 }, true],
    [{ major: 5, minor: 8 }, true],
    [{ major: 5, minor: 9 }, false],
  ])("conn_reuse_mode by kernel %j: %s", (kernel, set) => {
    expect(names({ strictARP: false, kernel }).includes("net.ipv4.vs.conn_reuse_mode=0")).toBe(set);
  });

  test("strictARP", () => {
    expect(names({ strictARP: true, kernel: { major: 6, minor: 1 } }).slice(-2)).toEqual([
      "net.ipv4.conf.all.arp_ignore=1",
      "net.ipv4.conf.all.arp_announce=2",
    ]);
  });
});

const OTHER = "192.0.2.100";
const LOAD_BALANCER = "198.51.100.7";

/** A Service at the address of another node and at one that no node has. */
const web = [
  service("web", {
    clusterIPs: ["10.96.0.13"],
    externalIPs: [OTHER, LOAD_BALANCER],
    ports: [{ name: "main", port: 80, targetPort: 8080 }],
  }),
  endpointSlice("web", {
    service: "web",
    family: "IPv4",
    ports: [{ name: "main", port: 8080 }],
    endpoints: [{ address: "10.144.0.8" }],
  }),
];

function options(...otherNodes: string[]) {
  return plannerOptions(goldenNode(false), {
    nodeAddresses: { IPv4: ["10.201.0.10"] },
    otherNodes: { IPv4: otherNodes },
  });
}

function bound(node: FakeNode): string[] {
  return [...(node.links.device("kube-ipvs0") ?? [])].sort();
}

test("the address of another node is not this node's own, and its virtual server serves", async () => {
  const node = new FakeNode();
  const cluster = new TestCluster(options(OTHER));
  cluster.put(...web);
  cluster.replan();
  await createIpvsBackend(node.port("IPv4")).sync(cluster.plan("IPv4"));
  expect(bound(node)).toEqual(["10.96.0.13", LOAD_BALANCER]);
  const servers = node.servers.servers().map(({ address, port }) => `${address}:${port}`);
  expect(servers.sort()).toEqual(["10.96.0.13:80", `${OTHER}:80`, `${LOAD_BALANCER}:80`]);
  expect(node.sets.sets().find(({ name }) => name === "KUBE-IPVS-IPS")?.members).toEqual(
    new Set(["10.96.0.13", LOAD_BALANCER]),
  );
});

test("a node that comes takes its address off the service device, without a full sync", async () => {
  const node = new FakeNode();
  const cluster = new TestCluster(options());
  cluster.put(...web);
  cluster.replan();
  const backend = createIpvsBackend(node.port("IPv4"));
  await backend.sync(cluster.plan("IPv4"));
  expect(bound(node)).toContain(OTHER);
  for (const others of [[OTHER], []]) {
    cluster.setOptions(options(...others));
    const change = cluster.replan().changes.get("IPv4");
    if (change === undefined) throw new Error("the plan is as it was");
    expect((await backend.apply(cluster.plan("IPv4"), change)).kind).toBe("partial");
    expect(bound(node).includes(OTHER)).toBe(others.length === 0);
  }
});

test("a change of Services goes through the addresses of other nodes not once, however many there are", async () => {
  const many = Array.from({ length: 1_000 }, (_, at) => `192.0.${at >> 8}.${at & 255}`);
  const cluster = new TestCluster(options(...many));
  cluster.put(...web);
  cluster.replan();
  const backend = createIpvsBackend(new FakeNode().port("IPv4"));
  await backend.sync(cluster.plan("IPv4"));
  const read = readsOf(cluster.plan("IPv4").node.otherNodes ?? []);
  for (const last of [14, 15]) {
    cluster.put(service(`web-${last}`, { clusterIPs: [`10.96.0.${last}`], ports: [{ port: 80 }] }));
    const change = cluster.replan().changes.get("IPv4");
    if (change === undefined) throw new Error("the plan is as it was");
    expect((await backend.apply(cluster.plan("IPv4"), change)).kind).toBe("partial");
  }
  expect(read()).toBe(0);
  cluster.setOptions(options(...many.slice(1)));
  const change = cluster.replan().changes.get("IPv4");
  if (change === undefined) throw new Error("the plan is as it was");
  await backend.apply(cluster.plan("IPv4"), change);
  expect(read()).toBeGreaterThan(0);
});

/** Counts from now on how often the list, or a set that is as large, is gone through. */
function readsOf(list: readonly string[]): () => number {
  let reads = 0;
  Object.defineProperty(list, Symbol.iterator, {
    value() {
      reads += 1;
      return list.values();
    },
  });
  const iterator = Set.prototype[Symbol.iterator];
  onTestFinished(() => {
    Set.prototype[Symbol.iterator] = iterator;
  });
  Set.prototype[Symbol.iterator] = function (this: Set<unknown>) {
    if (this.size === list.length) reads += 1;
    return iterator.call(this);
  };
  return () => reads;
}
