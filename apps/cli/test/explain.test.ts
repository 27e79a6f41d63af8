import {
  endpointSlice,
  gatewayReference,
  goldenScenario,
  goldenScenarios,
  type RawObject,
  webA1,
  webB1,
  workload,
} from "@fairlead/testkit";
import { LightApiServer } from "@fairlead/testkit/api-server";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { configFile, fileOf, kubeconfigFor } from "./support/files.ts";
import { fairlead } from "./support/run.ts";

const AGENT = ["--node", "node-a", "--node-address", "10.201.0.10", "--cluster-cidr", "10.144.0.0/16,fd00:144::/48"];

async function explain(objects: readonly RawObject[], ...args: string[]) {
  const run = await fairlead(["explain", ...args, "-f", "-", "-o", "json", ...AGENT], {
    stdin: JSON.stringify(objects),
  });
  return { ...run, answer: run.out === "" ? undefined : JSON.parse(run.out) };
}

describe("golden scenarios compared with what kube-proxy wrote for them", () => {
  test.each(goldenScenarios())("$name: every Service is explained, and the rules agree", async (scenario) => {
    const rules = fileOf(scenario.iptables);
    for (const { kind, metadata, spec } of scenario.objects as readonly Described[]) {
      if (kind !== "Service" || spec.clusterIP === undefined || spec.clusterIP === "None") continue;
      if (metadata.labels?.["service.kubernetes.io/service-proxy-name"] !== undefined) continue;
      const name = `${metadata.namespace ?? "default"}/${metadata.name}`;
      const { code, answer } = await explain(scenario.objects, name, "--rules", rules);
      expect(code, name).toBe(0);
      expect(answer.service).toBe(name);
      expect(answer.families[0].ownership.ownership).toBe("ours");
      for (const { checked } of answer.kernel.filter(({ family }: { family: string }) => family === "IPv4")) {
        expect(checked).toBeGreaterThan(0);
      }
    }
  });
});

test("what does other than it seems to ask for has a line each, what is open first", async () => {
  const { objects } = workload(1, { endpoints: [webA1], nodePort: true });
  const opened = objects.map((object) => {
    const { spec } = object as { readonly spec?: object };
    if (spec === undefined) return object;
    const limited = { ...spec, type: "LoadBalancer", loadBalancerSourceRanges: ["2001:db8:5::/48"] };
    return { ...object, spec: limited, status: { loadBalancer: { ingress: [{ ip: "203.0.113.42" }] } } };
  });
  const run = await fairlead(["explain", "svc-1", "-f", "-", ...AGENT], { stdin: JSON.stringify(opened) });
  expect(run.out).toMatch(
    /\nopen: spec\.loadBalancerSourceRanges .* 203\.0\.113\.42 is open to every client\nnote: .* node ports.*30001;.*\n/,
  );
  expect(run.err).not.toContain("open to every client");
});

describe("node ports on chosen addresses", () => {
  const explained = async (value: string) => {
    const annotations = { "fairlead.dev/node-port-addresses": value };
    const { objects } = workload(1, { endpoints: [webA1], nodePort: true, annotations });
    const both = ["--node-address", "10.201.0.10,10.202.0.10"];
    const run = await fairlead(["explain", "svc-1", "-f", "-", ...AGENT, ...both], { stdin: JSON.stringify(objects) });
    return run.out;
  };

  test("are named with their addresses", async () => {
    const text = await explained("10.202.0.0/24");
    expect(text).toContain("node ports on 10.202.0.10 only");
    expect(text).toMatch(/node-port 10\.202\.0\.10:30001 +1 cluster, masqueraded/);
    expect(text).not.toContain("10.201.0.10:30001");
  });

  test("say why they are nowhere", async () => {
    expect(await explained("eth1")).toContain(
      "node ports on no address (fairlead.dev/node-port-addresses must be CIDRs",
    );
  });
});

describe("annotations for clients", () => {
  const explained = async (fields: Partial<Parameters<typeof workload>[1]>) => {
    const { objects } = workload(1, { endpoints: [webB1], nodePort: true, ...fields });
    return (await fairlead(["explain", "svc-1", "-f", "-", ...AGENT], { stdin: JSON.stringify(objects) })).out;
  };
  const ranges = (value: string) => ({ annotations: { "fairlead.dev/node-port-source-ranges": value } });

  test("source ranges of node ports", async () => {
    expect(await explained(ranges("192.0.2.0/24"))).toContain("; node ports for 192.0.2.0/24 only\n");
    expect(await explained(ranges("the office"))).toContain(
      "; node ports for no client (fairlead.dev/node-port-source-ranges must be CIDRs",
    );
  });

  test("an answer where policy Local finds no endpoint", async () => {
    const annotations = { "fairlead.dev/no-local-endpoint": "reject" };
    const text = await explained({ annotations, externally: "Local" });
    expect(text).toContain("; clients are refused where Local finds no endpoint\n");
    expect(text).toMatch(/node-port 30001 \(Local\) +1 cluster +1 cluster, masqueraded +reject\n/);
  });

  test("shares by weight, and what is refused", async () => {
    const weighted = [
      { weight: "2", endpoints: [webA1] },
      { weight: "1", endpoints: [webB1] },
      { weight: "1", endpoints: [] },
    ];
    const text = await explained({ endpoints: [], weighted });
    expect(text).toMatch(/10\.144\.1\.5:8080 .* in: ready; 50 % of new connections/);
    expect(text).toMatch(/10\.144\.2\.6:8080 .* in: ready; 25 % of new connections/);
    expect(text).toContain("  refused by weight: 25 % of the cluster set\n");
  });

  test("addresses that are left to the load balancer", async () => {
    const annotations = { "fairlead.dev/load-balancer-ip-mode": "Proxy" };
    const text = await explained({ annotations, loadBalancer: "VIP" });
    expect(text).toMatch(/\nnote: metadata\.annotations .*load-balancer-ip-mode leaves .* to the load balancer/);
    expect(text).not.toContain("load-balancer 203.0.113.1");
  });
});

describe("node ports on loopback addresses in nftables mode", () => {
  const explainWith = async (settings: object, protocol: "TCP" | "UDP" = "TCP") => {
    const config = configFile({}, { mode: "nftables", ...settings });
    const objects = workload(1, { endpoints: [webA1], nodePort: true, protocol }).objects;
    return fairlead(["explain", "svc-1", "-f", "-", "--config", config, ...AGENT], { stdin: JSON.stringify(objects) });
  };
  const row = ({ out }: { readonly out: string }) => /^.*on loopback *(.*?) *$/m.exec(out)?.[1]?.split(/ {2,}/);
  const GATE = { featureGates: { KubeProxyNFTablesLocalhostNodePorts: true } };

  test("are relayed, refused, or not there", async () => {
    const onLoopback = { ...GATE, nodePortAddresses: ["primary", "localhost"] };
    expect(row(await explainWith(onLoopback))).toEqual(["-", "1 cluster, relayed", "-"]);
    expect(row(await explainWith(onLoopback, "UDP"))).toEqual(["-", "refused", "-"]);
    expect(row(await explainWith(GATE))).toEqual(["-", "refused", "-"]);
    const without = await explainWith({ nodePortAddresses: ["primary", "localhost"] });
    expect(row(without)).toBeUndefined();
    expect(without.err).toContain("KubeProxyNFTablesLocalhostNodePorts=true");
  });

  test("stand in the planned table as the agent writes it", async () => {
    const config = configFile({}, { mode: "nftables", ...GATE });
    const objects = workload(1, { endpoints: [webA1], nodePort: true }).objects;
    const { out } = await fairlead(["plan", "-f", "-", "--config", config, ...AGENT], {
      stdin: JSON.stringify(objects),
    });
    expect(out).toContain("goto localhost-nodeport-reject-tcp");
  });
});

test("the Gateway whose Service it is, and the route of a port", async () => {
  // A label holds 63 letters.
  const name = `${"long.".repeat(19)}names`;
  const [service, slice] = workload(1, { endpoints: [webA1], gateway: name }).objects;
  const explained = async (...flags: readonly string[]) => {
    const annotations = { "fairlead.dev/gateway-routes": "sql=shop/db" };
    const named = {
      ...service,
      metadata: { ...service?.metadata, annotations },
      spec: { ...Object(service?.["spec"]), ports: [{ name: "sql", port: 80 }] },
    };
    const stdin = JSON.stringify([named, { ...slice, ports: [{ name: "sql", port: 8080 }] }]);
    return (await fairlead(["explain", "svc-1", "-f", "-", ...AGENT, ...flags], { stdin })).out;
  };
  const text = await explained();
  expect(text).toContain(`mode\nGateway default/${name}; its routes: fairlead explain gateway default/${name}\n`);
  expect(text).toContain("\nTCP port sql, of TCPRoute shop/db\n");
  const { families } = JSON.parse(await explained("-o", "json"));
  expect(families[0].ports[0]).toMatchObject({ name: "sql", route: "TCPRoute shop/db" });
});

test("what trafficDistribution asks for, and why it is not met", async () => {
  const [service, slice] = workload(1, { endpoints: [webA1] }).objects;
  const asking = { ...service, spec: { ...Object(service)["spec"], trafficDistribution: "PreferSameNode" } };
  const text = async (...objects: unknown[]) =>
    (await fairlead(["explain", "svc-1", "-f", "-", ...AGENT], { stdin: JSON.stringify(objects) })).out;
  expect(await text(asking, slice)).toContain(
    "traffic distribution PreferSameNode: not met: 1 of 1 ready endpoints have no hint for a node; the node has no zone " +
      "(label topology.kubernetes.io/zone); only the hints of EndpointSlices count",
  );
  const endpoints = Object(slice)["endpoints"].map((one: object) => ({
    ...one,
    hints: { forNodes: [{ name: "node-a" }] },
  }));
  expect(await text(asking, { ...slice, endpoints })).toContain(
    "traffic distribution PreferSameNode: hints keep it on the same node",
  );
  expect(await text(service, slice)).not.toContain("traffic distribution");
});

describe("a Service of another proxy", () => {
  const objects = workload(1, {
    endpoints: [webA1],
    labels: { "service.kubernetes.io/service-proxy-name": "edge" },
  }).objects;
  const explainFile = async (...args: string[]) => {
    const file = fileOf(objects, "labeled.json");
    return fairlead(["explain", "svc-1", "-f", file, ...AGENT, ...args]);
  };

  test("is said to be left to it", async () => {
    const { code, err } = await explainFile();
    expect(err).toBe("svc-1: left to service proxy edge (label service.kubernetes.io/service-proxy-name)\n");
    expect(code).toBe(3);
    const { err: others } = await explainFile("--service-proxy-name", "inner");
    expect(others).toContain("left to service proxy edge");
  });

  test("is explained as the agent of that name has it", async () => {
    expect((await explainFile("--service-proxy-name", "edge", "--mode", "nftables")).code).toBe(0);
  });

  test("on pods' secondary networks only endpoints of fairlead-controller count", async () => {
    const slice = endpointSlice("svc-1-storage", {
      service: "svc-1",
      family: "IPv4",
      ports: [{ port: 8080 }],
      endpoints: [{ address: "192.168.50.10" }],
    });
    const { metadata, ...rest } = slice;
    const labels = { ...metadata.labels, "endpointslice.kubernetes.io/managed-by": "networks.fairlead.dev" };
    const file = fileOf([...objects, { ...rest, metadata: { ...metadata, labels } }], "secondary.json");
    const instance = ["--service-proxy-name", "edge", "--mode", "nftables"];
    const all = ["explain", "svc-1", "-f", file, ...AGENT, ...instance];
    const { out } = await fairlead([...all, "--agent-flag", "service-network"]);
    expect(out).toContain(
      "Served by instance edge; endpoints on pods' secondary networks, from EndpointSlices of networks.fairlead.dev only\n",
    );
    expect(out).toContain("192.168.50.10:8080");
    expect(out).not.toContain(webA1.addresses.IPv4);
    const { out: everything } = await fairlead(all);
    expect(everything).toContain("Served by instance edge\n");
    expect(everything).toContain(webA1.addresses.IPv4);
    const json = JSON.parse((await fairlead([...all, "--agent-flag", "service-network", "-o", "json"])).out);
    expect(json).toMatchObject({ serviceProxyName: "edge", slicesManagedBy: "networks.fairlead.dev" });
  });

  test("a Service without the label is left to the first proxy", async () => {
    const file = fileOf(workload(1, { endpoints: [webA1] }).objects, "unlabeled.json");
    const { err } = await fairlead(["explain", "svc-1", "-f", file, ...AGENT, "--service-proxy-name", "edge"]);
    expect(err).toMatch(/^svc-1: has no label .*: left to the node's default proxy$/m);
  });
});

interface Described extends RawObject {
  readonly spec: { readonly clusterIP?: string; readonly ports?: readonly { readonly port: number }[] };
  readonly metadata: RawObject["metadata"] & { readonly labels?: Readonly<Record<string, string>> };
}

describe("objects that are wrong", () => {
  const service = (name: string, port: number) => ({
    ...{ apiVersion: "v1", kind: "Service", metadata: { name, namespace: "default" } },
    spec: { clusterIP: `10.96.0.${name.length}`, ports: [{ port: 80 }, { name: "other", port }] },
  });
  const objects = [service("web", 70_000), service("db", 80_000)];

  test.each([
    ["web", "70000", "80000"],
    ["10.96.0.2:80", "80000", "70000"],
  ])("those that decide about %s are warned of, others are not read", async (target, reported, unread) => {
    const { err, code } = await explain(objects, target);
    expect(code).toBe(0);
    expect(err).toContain(reported);
    expect(err).not.toContain(unread);
  });
});

describe("a service by an address of it", () => {
  test.each([
    ["cluster IP", "10.96.1.9:80"],
    ["load balancer", "203.0.113.9:80"],
    ["node port, on any address", "10.201.0.10:30109"],
  ])("%s", async (_what, target) => {
    const { answer } = await explain(goldenScenario("09-loadbalancer").objects, target);
    expect(answer.service).toBe("default/lb");
    expect(answer.families[0].ports).toHaveLength(1);
  });

  test("UDP and TCP at one port are two ports", async () => {
    const { objects } = goldenScenario("02-dns-tcp-udp");
    const { answer } = await explain(objects, "kube-system/kube-dns:dns");
    expect(answer.families[0].ports.map(({ protocol }: { protocol: string }) => protocol)).toEqual(["UDP"]);
  });
});

test("a service of another network says which CIDR decided, and why no endpoint is used", async () => {
  const { objects } = goldenScenario("01-clusterip");
  const { answer, code } = await explain(objects, "nginx-calico", "--exclude-cluster-cidr", "10.144.154.0/24");
  const [family] = answer.families;
  expect(family.ownership).toMatchObject({ ownership: "foreign", decidingCIDRs: ["10.144.154.0/24"] });
  expect(family.ports[0].lost).toHaveLength(1);
  expect(family.ports[0].endpoints[0].cluster).toEqual({
    in: false,
    why: "another network serves the service",
  });
  expect(code).toBe(0);
});

test("a kernel that does something else is exit 1, and says what", async () => {
  const { objects, iptables } = goldenScenario("05-nodeport");
  const rules = fileOf(iptables.replace(/--to-destination \S+/, "--to-destination 10.144.9.9:8080"));
  const { code, answer } = await explain(objects, "np", "--rules", rules);
  expect(code).toBe(1);
  expect(Object.keys(answer.kernel[0].disagreements[0].found).join()).toContain("10.144.9.9:8080");
});

test("the text for people has the same in it", async () => {
  const { objects } = goldenScenario("11-lb-local-healthcheck");
  const { out } = await fairlead(["explain", "lbl", "-f", "-", ...AGENT], { stdin: JSON.stringify(objects) });
  expect(out).toMatch(/load-balancer 203\.0\.113\.11:80 \(Local\) +2 cluster +2 cluster, masqueraded +1 local$/m);
  expect(out).toMatch(/10\.144\.2\.6:8080 +node-b +in: ready +out: on node-b$/m);
  expect(out).toContain("health check on 31111: 1 ready here");
});

describe("what cannot be explained", () => {
  test.each([
    ["no such service", ["nope"], 3, /^nope: there is no such Service/],
    ["no service has the address", ["10.96.9.9:80"], 3, /^10\.96\.9\.9:80: no service has/],
    ["no target", ["10.96.9.999:80"], 2, /must be \[NAMESPACE\/\]SERVICE/],
    ["two kernels", ["lb", "--live", "--on", "node-a"], 2, /mutually exclusive/],
    ["no such listing", ["lb", "--rules", "/does/not/exist"], 3, /--rules=\/does\/not\/exist: no such file or folder/],
  ])("%s", async (_what, args, expected, message) => {
    const { code, err } = await explain(goldenScenario("09-loadbalancer").objects, ...args);
    expect(err).toMatch(message);
    expect(code).toBe(expected);
  });
});

test("a port that the Service does not have is an error that names those it has", async () => {
  const objects = goldenScenario("09-loadbalancer").objects;
  const [found] = (objects as readonly Described[]).filter(({ kind }) => kind === "Service");
  if (found === undefined) throw new Error("the scenario has no Service");
  const { metadata, spec } = found;
  const name = `${metadata.namespace ?? "default"}/${metadata.name}`;
  const { err, code } = await explain(objects, `${name}:nosuchport`);
  expect(err).toContain(`${name}:nosuchport: ${name} has no port nosuchport; it has: `);
  expect(code).toBe(3);
  const port = spec.ports?.[0]?.port;
  expect(await explain(objects, `${name}:${port}`)).toMatchObject({ code: 0 });
});

describe("the fast path", () => {
  const FLOWTABLE = "table ip kube-proxy {\n\tflowtable fast-path {\n\t\thook ingress priority filter\n";

  /** Its line about the fast path, of a Service with a node port. */
  async function explained(
    fields: Partial<Parameters<typeof workload>[1]>,
    settings: object = {},
    ...args: readonly string[]
  ) {
    const file = configFile({ nftables: { fastPath: { devices: ["cali*"] } } }, { mode: "nftables", ...settings });
    const { objects } = workload(1, { endpoints: [webA1], nodePort: true, ...fields });
    const run = await fairlead(["explain", "svc-1", "-f", "-", "--config", file, ...AGENT, ...args], {
      stdin: JSON.stringify(objects),
    });
    return /^ *fast path: (.*)$/m.exec(run.out)?.[1];
  }

  test.each([
    ["its connections are on it", {}, {}, "established connections"],
    [
      "but for node ports on all addresses",
      {},
      { nodePortAddresses: ["all"] },
      "established connections; not those to its node port, which is served on all addresses",
    ],
    [
      "not with the annotation",
      { annotations: { "fairlead.dev/fast-path": "off" } },
      {},
      "no, the Service's annotation fairlead.dev/fast-path",
    ],
    ["not SCTP", { protocol: "SCTP" }, {}, "no, flowtables do not take SCTP"],
    ["not in another mode", {}, { mode: "iptables" }, undefined],
  ] as const)("%s", async (_what, fields, settings, expected) => {
    expect(await explained(fields, settings)).toBe(expected);
  });

  test.each([
    [
      "not where the kernel has no flowtable",
      "table ip kube-proxy {\n}\n",
      "no, it is disabled on this node; `fairlead doctor` says why",
    ],
    ["not without a device", `${FLOWTABLE}\t}\n}\n`, "no, no device is in the flowtable"],
    ["with a device", `${FLOWTABLE}\t\tdevices = { cali1 }\n\t}\n}\n`, "established connections"],
  ])("%s", async (_what, listing, expected) => {
    expect(await explained({}, {}, "--rules", fileOf(listing))).toBe(expected);
  });
});

describe("a Gateway", () => {
  const server = new LightApiServer();
  const args: string[] = [];
  const put = (path: string, name: string, spec: object, more: object = {}) =>
    server.store.put(path, { metadata: { namespace: "shop", name, ...more }, spec, ...more });
  /** As fairlead-controller makes it. */
  const putService = (name: string, gateway: string, label = gateway) =>
    put(
      "/api/v1/services",
      name,
      {},
      {
        labels: { "gateway.networking.k8s.io/gateway-name": label },
        ownerReferences: [gatewayReference(gateway)],
      },
    );
  beforeAll(async () => void args.push("--kubeconfig", kubeconfigFor(await server.start())));
  afterAll(() => server.stop());

  test("a name that no label can hold: its Service is found", async () => {
    const name = `${"long.".repeat(20)}name`;
    put("/apis/gateway.networking.k8s.io/v1/gateways", name, { gatewayClassName: "fairlead" });
    putService("long-1", name, "long-long-1");
    const { out } = await fairlead(["explain", "gateway", `shop/${name}`, ...args]);
    expect(out).toContain("by Service shop/long-1 (");
  });

  test("the oldest route has a listener, weights are shares, and conditions say what is wrong", async () => {
    const group = "/apis/gateway.networking.k8s.io/v1";
    const condition = (type: string, status: string) => ({
      type,
      status,
      reason: `${type}Reason`,
      message: "so it is",
    });
    const listeners = [
      { name: "sql", port: 5432, protocol: "TCP" },
      { name: "dns", port: 53, protocol: "UDP" },
    ];
    const conditions = [condition("Accepted", "True"), condition("Programmed", "False")];
    const status = { addresses: [{ value: "192.0.2.7" }], conditions };
    put(`${group}/gateways`, "db", { gatewayClassName: "fairlead", listeners }, { status });
    putService("db-fairlead", "db");
    for (const [name, hour, accepted] of [
      ["late", "02", "True"],
      ["first", "01", "True"],
      ["refused", "00", "False"],
    ] as const) {
      const backendRefs = [
        { name, port: 1, weight: 3 },
        { name: "canary", namespace: "other", port: 2 },
      ];
      const parents = [
        { parentRef: { name: "db", sectionName: "sql" }, conditions: [condition("Accepted", accepted)] },
      ];
      const more = { creationTimestamp: `2026-01-01T${hour}:00:00Z`, status: { parents } };
      put(`${group}/tcproutes`, name, { rules: [{ backendRefs }] }, more);
    }
    const { out, code } = await fairlead(["explain", "gateway", "shop/db", ...args]);
    expect(out.replaceAll(/ {2,}/g, " | ")).toBe(`\
Gateway shop/db of class fairlead, at 192.0.2.7, by Service shop/db-fairlead (fairlead explain shop/db-fairlead)

LISTENER | ROUTE | LEADS TO
sql 5432/TCP | TCPRoute shop/first | shop/first:1 75 %, other/canary:2 25 %
sql 5432/TCP | TCPRoute shop/late | waits: an older route has the listener
dns 53/UDP | none | -
! Gateway: Programmed False, ProgrammedReason: so it is
! TCPRoute shop/refused: Accepted False, AcceptedReason: so it is
`);
    expect(code).toBe(0);
  });

  test.each([
    [["gateway", "shop/none"], 3, "there is no Gateway shop/none"],
    [["svc", "shop/db"], 2, "must be one target, or gateway"],
    [["gateway", "db", "-f", "-"], 2, "leave out -f and --sysdump"],
  ])("%j", async (given, code, message) => {
    const run = await fairlead(["explain", ...given, ...args]);
    expect([run.code, run.err]).toEqual([code, expect.stringContaining(message)]);
  });
});
