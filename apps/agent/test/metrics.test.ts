import { readFileSync } from "node:fs";
import { join } from "node:path";
import { iptablesFacts } from "@fairlead/backend-iptables";
import { ipvsFacts } from "@fairlead/backend-ipvs";
import { nftablesFacts } from "@fairlead/backend-nftables";
import { until, VirtualClock } from "@fairlead/base/testing";
import { ClusterState } from "@fairlead/core";
import { endpointSlice, goldenFolder, readMetrics, type SeenMetric, service } from "@fairlead/testkit";
import { Registry } from "prom-client";
import { describe, expect, test } from "vitest";
import { metricsPage } from "../scripts/metrics-page.ts";
import { metricsApp } from "../src/http/metrics-app.ts";
import { createMetrics } from "../src/metrics/metrics.ts";
import { programmingBuckets } from "../src/metrics/registry.ts";
import { addServiceMetrics, type ServiceConnections } from "../src/metrics/service-metrics.ts";
import { A, B, HTTP, other, slice, tracked, web } from "./support/connections.ts";
import { ask, freePort, nothingMeasured } from "./support/http.ts";
import { runningAgent } from "./support/running-agent.ts";

const PACKETS = new Map([
  ["ct_state_invalid_dropped_pkts", 3],
  ["localhost_nps_accepted_pkts", 5],
]);

function metrics() {
  const read = async (name: string) => {
    const count = PACKETS.get(name);
    return count === undefined ? undefined : { packets: count, bytes: 0 };
  };
  return createMetrics(new ClusterState(), { mode: iptablesFacts, nfacct: { read } });
}

/** Gives every metric one sample in each label, so that the text shows all of them. */
async function exposed(): Promise<ReadonlyMap<string, SeenMetric>> {
  const all = metrics();
  const family = { ip_family: "IPv4" };
  all.sync.duration.observe(family, 1);
  all.sync.fullDuration.observe(family, 1);
  all.sync.partialDuration.observe(family, 1);
  all.sync.programming.observe(family, 1);
  all.sync.lastTimestamp.set(family, 1);
  all.sync.lastQueued.set(family, 1);
  all.sync.noLocalEndpoints.set({ ...family, traffic_policy: "internal" }, 1);
  all.iptables?.rulesTotal.set({ ...family, table: "nat" }, 1);
  all.iptables?.rulesLast.set({ ...family, table: "nat" }, 1);
  return readMetrics((await all.text()).text);
}

function golden(): [name: string, metric: SeenMetric][] {
  const list = (text: string, separator: string) => (text === "-" ? [] : text.split(separator));
  return readFileSync(join(goldenFolder, "kube-proxy", "metrics.tsv"), "utf8")
    .split("\n")
    .filter((line) => line.startsWith("kubeproxy_"))
    .map((line) => {
      const [name = "", type = "", labels = "-", buckets = "-"] = line.split("\t");
      return [name, { type, labels: list(labels, ",").sort(), buckets: list(buckets, " ") }];
    });
}

/** kube-proxy's metrics in all of its modes on Linux, as its source registers them, less their prefix. */
const documented = [
  ...["sync_proxy_rules_duration_seconds", "sync_full_proxy_rules_duration_seconds"],
  ...["sync_partial_proxy_rules_duration_seconds", "network_programming_duration_seconds"],
  ...["sync_proxy_rules_endpoint_changes_pending", "sync_proxy_rules_endpoint_changes_total"],
  ...["sync_proxy_rules_service_changes_pending", "sync_proxy_rules_service_changes_total"],
  ...["sync_proxy_rules_last_timestamp_seconds", "sync_proxy_rules_last_queued_timestamp_seconds"],
  ...["sync_proxy_rules_no_local_endpoints_total", "sync_proxy_rules_iptables_total", "sync_proxy_rules_iptables_last"],
  ...["sync_proxy_rules_iptables_restore_failures_total", "sync_proxy_rules_iptables_partial_restore_failures_total"],
  ...["sync_proxy_rules_nftables_sync_failures_total", "sync_proxy_rules_nftables_cleanup_failures_total"],
  ...["iptables_ct_state_invalid_dropped_packets_total", "iptables_localhost_nodeports_accepted_packets_total"],
  ...["conntrack_reconciler_sync_duration_seconds", "conntrack_reconciler_deleted_entries_total"],
  ...["proxy_healthz_total", "proxy_livez_total"],
];

test("what is held of learned networks is reported, in services", async () => {
  const { networks, text } = createMetrics(new ClusterState(), { learns: true });
  networks?.set([], { sources: [], changes: [], counts: new Map(), held: 5 });
  expect((await text()).text).toContain("\nfairlead_held_cidrs 5\n");
});

describe("metrics", () => {
  test("every metric of kube-proxy is there with its type, labels and buckets", async () => {
    const all = await exposed();
    const wanted = golden();
    expect(wanted.length).toBeGreaterThan(10);
    for (const [name, metric] of wanted) expect([name, all.get(name)]).toEqual([name, metric]);
  });

  test("kube-proxy's other metrics are there, those of a mode in that mode", async () => {
    const { text } = await metrics().text();
    const missing = documented.filter((name) => !text.includes(`# TYPE kubeproxy_${name} `));
    expect(missing).toEqual(documented.filter((name) => name.includes("nftables")));
    const { text: nft } = await createMetrics(new ClusterState(), { mode: nftablesFacts }).text();
    const missingThere = documented.filter((name) => !nft.includes(`# TYPE kubeproxy_${name} `));
    expect(missingThere).toEqual(documented.filter((name) => name.startsWith("sync_proxy_rules_iptables")));
  });

  test("the kernel's own packet counts are read when asked", async () => {
    const all = metrics();
    expect((await all.text()).text).toContain("kubeproxy_iptables_ct_state_invalid_dropped_packets_total 3\n");
    PACKETS.set("ct_state_invalid_dropped_pkts", 4);
    expect((await all.text()).text).toContain("kubeproxy_iptables_ct_state_invalid_dropped_packets_total 4\n");
    expect((await all.text()).text).toContain("kubeproxy_iptables_localhost_nodeports_accepted_packets_total 5\n");
  });

  test("buckets of network programming: 0.25, 0.5, 1…59, 60…115, 120…300", () => {
    expect(programmingBuckets.slice(0, 3)).toEqual([0.25, 0.5, 1]);
    expect(programmingBuckets.slice(60, 64)).toEqual([59, 60, 65, 70]);
    expect(programmingBuckets.slice(-8)).toEqual([115, 120, 150, 180, 210, 240, 270, 300]);
    expect(programmingBuckets).toHaveLength(2 + 59 + 12 + 7);
  });
});

describe("the metrics port", () => {
  const app = metricsApp(
    {
      ...nothingMeasured(),
      metrics: async () => ({ text: "a 1\n", contentType: "text/plain; version=0.0.4; charset=utf-8" }),
      configuration: () => ({
        "kubeproxy.config.k8s.io": {
          kind: "KubeProxyConfiguration",
          apiVersion: "kubeproxy.config.k8s.io/v1alpha1",
        },
      }),
      ownership: () => ({ services: [] }),
    },
    new VirtualClock(),
  );

  /** Lines such as `GET :10249/healthz     200 text/plain; charset=utf-8        ok`. */
  const recorded = readFileSync(join(goldenFolder, "kube-proxy", "endpoints.txt"), "utf8")
    .split("\n")
    .flatMap((line) => {
      const [, path = "", type = "", body = ""] =
        /^GET :10249(\S+)\s+200 (text\/plain; charset=utf-8|application\/json)\s+(.+)$/.exec(line) ?? [];
      return path === "" ? [] : [{ path, type, body: body.replace(/,…\}\}$/, "}}") }];
    });

  test("three of its paths were recorded from kube-proxy", () => {
    expect(recorded.map(({ path }) => path)).toEqual(["/proxyMode", "/healthz", "/configz"]);
  });

  test.each(recorded)("$path answers as kube-proxy does", async ({ path, type, body }) => {
    const answer = await ask(app, path);
    expect(answer.status).toBe(200);
    expect(answer.headers.get("Content-Type")).toBe(type);
    expect(answer.headers.get("X-Content-Type-Options")).toBe("nosniff");
    expect(await answer.text()).toBe(body);
  });

  test("an unknown path is 404", async () => {
    expect((await ask(app, "/nothing")).status).toBe(404);
  });
});

/** What `promtool check metrics` complains of, after Prometheus' promlint. */
function lint(text: string): readonly string[] {
  const types = new Map([...text.matchAll(/^# TYPE (\S+) (\S+)$/gm)].map(([, name = "", type = ""]) => [name, type]));
  const described = new Set([...text.matchAll(/^# HELP (\S+) \S/gm)].map(([, name]) => name));
  const labels = new Set([...text.matchAll(/[{,](\w+)="/g)].map(([, label = ""]) => label));
  return [
    ...[...types].flatMap(([name, type]) => lintMetric(name, type, described.has(name))),
    ...[...labels].filter((label) => /[A-Z]/.test(label)).map((label) => `${label}: labels are written in snake case`),
  ];
}

const OTHER_UNITS =
  /_(?:(?:milli|micro|nano)seconds|minutes|hours|days|(?:kilo|mega|giga|kibi|mebi|gibi)?bits|(?:kilo|mega|giga)bytes)(?:_|$)/;
const ABBREVIATIONS = /_(?:s|ms|us|ns|sec|b|kb|mb|gb|tb|h|d)(?:_|$)/;

function lintMetric(name: string, type: string, described: boolean): readonly string[] {
  const complaints: readonly (readonly [boolean, string])[] = [
    [!described, "no help text"],
    [(type === "counter") !== name.endsWith("_total"), "counters, and nothing else, end in _total"],
    [type !== "histogram" && /_(?:bucket|count|sum)$/.test(name), "ends as a histogram's sample does"],
    [new RegExp(`_${type}(?:_|$)`).test(name), "has its type in its name"],
    [/[A-Z:]/.test(name), "has letters that recording rules and other styles have"],
    [OTHER_UNITS.test(name) || ABBREVIATIONS.test(name), "is not in base units, written out"],
  ];
  return complaints.flatMap(([is, what]) => (is ? [`${name}: ${what}`] : []));
}

/** Gauges by names that dashboards know from kube-proxy and from Node's client library. */
const GAUGES_OF_OTHERS = [
  "kubeproxy_sync_proxy_rules_no_local_endpoints_total",
  "kubeproxy_sync_proxy_rules_iptables_total",
  "nodejs_active_resources_total",
  "nodejs_active_handles_total",
  "nodejs_active_requests_total",
];

test("/metrics passes promlint, but for gauges whose names are others'", async () => {
  const nfacct = { read: async () => ({ packets: 1, bytes: 1 }) };
  const connections = async () => undefined;
  const { text } = await createMetrics(new ClusterState(), { mode: ipvsFacts, nfacct, connections }).text();
  expect(lint(text)).toEqual(GAUGES_OF_OTHERS.map((name) => `${name}: counters, and nothing else, end in _total`));
});

test("what promlint complains of is found", () => {
  expect(lint('# HELP a b\n# TYPE a counter\n# TYPE waited_ms gauge\nwaited_ms{nodeName="b"} 1\n')).toEqual([
    "a: counters, and nothing else, end in _total",
    "waited_ms: no help text",
    "waited_ms: is not in base units, written out",
    "nodeName: labels are written in snake case",
  ]);
});

test("docs/metrics.md is what `pnpm --filter @fairlead/agent run metrics` writes", () => {
  expect(readFileSync(new URL("../../../docs/metrics.md", import.meta.url), "utf8")).toBe(metricsPage());
});

/** Left to the network that its endpoint is of. */
const ovn = service("ovn", { namespace: "shop", clusterIPs: ["10.96.0.13"], ports: [{ port: 80 }] });
const ovnSlice = endpointSlice("ovn-1", {
  namespace: "shop",
  service: "ovn",
  family: "IPv4",
  ports: [{ port: 80 }],
  endpoints: [{ address: "10.244.0.7" }],
});

describe("connections of services as metrics", () => {
  const text = async (read: () => Promise<ServiceConnections | undefined>) => {
    const registry = new Registry();
    addServiceMetrics(registry, read);
    return registry.metrics();
  };
  const samples = (metrics: string) => metrics.split("\n").filter((line) => /^fairlead_/.test(line));

  test("hostile names stay in their labels", async () => {
    const hostile = { namespace: 'a"} 1', service: "b\nfairlead_services 9", port: "\\", endpoint: "[::1]:1" };
    const metrics = await text(async () => ({ series: [{ ...hostile, connections: 3 }], leftOut: 4 }));
    expect(samples(metrics)).toEqual([
      String.raw`fairlead_service_connections{namespace="a\"} 1",service="b\nfairlead_services 9",port="\\",endpoint="[::1]:1"} 3`,
      "fairlead_service_connections_left_out 4",
      "fairlead_service_connections_blind 0",
    ]);
  });

  test("what is over has no series any more, and neither has what cannot be read", async () => {
    const registry = new Registry();
    const one = { namespace: "shop", service: "web", port: "http", endpoint: "10.144.2.6:8080", connections: 1 };
    let said: ServiceConnections | undefined = { series: [one], leftOut: 2 };
    addServiceMetrics(registry, async () => said);
    expect(samples(await registry.metrics())).toHaveLength(3);
    said = undefined;
    expect(samples(await registry.metrics())).toEqual([
      "fairlead_service_connections_left_out 0",
      "fairlead_service_connections_blind 1",
    ]);
  });

  test.for(["iptables", "ipvs", "nftables"])(
    "of an agent in %s mode, which has none unless asked",
    async (mode, { signal }) => {
      expect(await scraped(signal, mode)).toEqual([]);
      expect(await scraped(signal, mode, "--service-metrics=shop")).toEqual([
        'fairlead_service_connections{namespace="shop",service="web",port="http",endpoint="10.144.2.6:8080"} 1',
        "fairlead_service_connections_left_out 0",
        "fairlead_service_connections_blind 0",
      ]);
    },
  );

  /** What a whole agent reports of connections with services: ours, of another namespace, and of another network. */
  async function scraped(signal: AbortSignal, mode: string, ...flags: string[]): Promise<readonly string[]> {
    const metricsPort = await freePort();
    const excluding = "--exclude-cluster-cidr=10.244.0.0/16";
    const one = await runningAgent({ mode, flags: [`--proxy-mode=${mode}`, excluding, ...flags], metricsPort });
    await until(signal, () => one.log.messages("verbose").includes("Listening"));
    await one.serve(web, other, ovn, slice, ovnSlice);
    one.tracking.connections = [
      tracked(HTTP, A),
      tracked(["10.96.0.12", 80], B),
      tracked(["10.96.0.13", 80], ["10.244.0.7", 80]),
    ];
    const answer = await fetch(`http://127.0.0.1:${metricsPort}/metrics`);
    const lines = samples(await answer.text());
    return lines.filter((line) => line.startsWith("fairlead_service_connections"));
  }
});
