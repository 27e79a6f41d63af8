import { ipvsFacts } from "@fairlead/backend-ipvs";
import { ClusterState } from "@fairlead/core";
import { expect, test } from "vitest";
import { createMetrics } from "../src/metrics/metrics.ts";

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
