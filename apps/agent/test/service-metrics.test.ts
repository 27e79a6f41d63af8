import { until } from "@fairlead/base/testing";
import { endpointSlice, node, service } from "@fairlead/testkit";
import { Registry } from "prom-client";
import { describe, expect, test } from "vitest";
import { addServiceMetrics, type ServiceConnections } from "../src/metrics/service-metrics.ts";
import { A, B, HTTP, other, slice, web } from "./support/called-services.ts";
import { freePort } from "./support/free-port.ts";
import { runningAgent } from "./support/running-agent.ts";
import { tracked } from "./support/tracked.ts";

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

  test("names that nobody should have stay in their labels", async () => {
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

  /** What a whole agent tells of connections with services: ours, of another namespace, and of another network. */
  async function scraped(signal: AbortSignal, mode: string, ...flags: string[]): Promise<readonly string[]> {
    const metricsPort = await freePort();
    const excluding = "--exclude-cluster-cidr=10.244.0.0/16";
    const one = runningAgent({ mode, flags: [`--proxy-mode=${mode}`, excluding, ...flags], metricsPort });
    await until(signal, () => one.log.messages("verbose").includes("Listening"));
    await one.source.put(node("node-a", { addresses: ["10.201.0.10"] }), web, other, ovn, slice, ovnSlice);
    await one.source.synced("services", "endpointSlices", "node");
    await one.clock.advance(5_000);
    one.tracking.connections = [
      tracked(HTTP, A),
      tracked(["10.96.0.12", 80], B),
      tracked(["10.96.0.13", 80], ["10.244.0.7", 80]),
    ];
    const answer = await fetch(`http://127.0.0.1:${metricsPort}/metrics`);
    const lines = samples(await answer.text());
    await one.stop();
    return lines.filter((line) => line.startsWith("fairlead_service_connections"));
  }
});
