import { readTables } from "@fairlead/netfilter/nft";
import { describe, expect, test } from "vitest";
import { addressPath, serviceObject, sliceObject, storedServices } from "../src/cluster/objects.ts";
import {
  busySecondsOf,
  bytesReceivedOf,
  cpuSecondsOf,
  exactCpuSecondsOf,
  memoryOf,
  ownSeconds,
} from "../src/measure/process-figures.ts";
import { median, quantile } from "../src/measure/result.ts";
import { frontendsOf } from "../src/measure/rules.ts";
import { childrenAmong, fullSyncTimeOf, klogTime } from "../src/proxy/running.ts";

describe("figures", () => {
  test("the median of an even number of values lies between the middle two", () => {
    expect(median([9, 1, 3])).toBe(3);
    expect(median([4, 1, 2, 9])).toBe(3);
  });

  test("a quantile is a value that was measured", () => {
    const values = Array.from({ length: 50 }, (_, index) => 50 - index);
    expect(quantile(values, 0.99)).toBe(50);
    expect(quantile(values, 0.5)).toBe(25);
    expect(quantile([7], 0.01)).toBe(7);
  });
});

describe("what the kernel says of a process", () => {
  test("CPU: its own and that of children that have ended, whatever its name", () => {
    const stat = `42 (a) b) S 1 42 42 0 -1 4194304 100 200 0 0 150 50 30 20 20 0 9 0 1000 0 0`;
    expect(cpuSecondsOf(stat)).toBe(2.5);
    expect(exactCpuSecondsOf(["1500000 9000000 7\n", "500000 0 1\n"], stat)).toBeCloseTo(0.502, 9);
  });

  test("CPU of a process with all that descend from it, and of the whole machine", () => {
    const stat = (pid: number, parent: number, ticks: number) =>
      `${pid} (x) S ${parent} 1 1 0 -1 0 0 0 0 0 ${ticks} 0 0 0 20 0 1 0 1000 0 0`;
    const stats = [stat(1, 0, 10_000), stat(7, 1, 100), stat(8, 7, 200), stat(9, 8, 300), stat(10, 1, 9000), ""];
    expect(ownSeconds(stats, 7)).toBe(6);
    expect(childrenAmong(stats, 1)).toEqual([7, 10]);
    expect(busySecondsOf("cpu  100 200 300 9999 8888 40 60 7777 0 0\ncpu0 1 1 1 1\n")).toBe(7);
  });

  test("memory in units of 1,024 bytes", () => {
    expect(memoryOf("Name:\tnode\nVmHWM:\t   2000 kB\nVmRSS:\t   1000 kB\n")).toEqual({ now: 1.024, peak: 2.048 });
  });

  test("bytes of one interface", () => {
    const table = "Inter-|   Receive\n face |bytes packets\n    lo: 10 1 0\n  eth0: 4711 5 0\n";
    expect(bytesReceivedOf(table, "eth0")).toBe(4711);
  });
});

test("only full syncs of IPv4 are counted", () => {
  const name = "kubeproxy_sync_full_proxy_rules_duration_seconds";
  const metrics = `${name}_sum{ip_family="IPv6"} 9\n${name}_sum{ip_family="IPv4"} 0.25\n${name}_count{ip_family="IPv4"} 1\n`;
  expect(fullSyncTimeOf(metrics)).toBe(250);
  expect(() => fullSyncTimeOf("")).toThrow("no duration of full syncs");
});

test("a log line's time is local, to the microsecond", () => {
  expect(klogTime("1121 10:09:13.123456", 2026)).toBeCloseTo(new Date(2026, 10, 21, 10, 9, 13).getTime() + 123.456, 3);
});

/** As Fairlead writes it: endpoints are elements. */
function ours(...endpoints: readonly string[]): string {
  const slots = endpoints.map((endpoint, slot) => `10.96.0.10 . tcp . 80 . ${slot} : ${endpoint} . 8080`);
  return `table ip kube-proxy {
    map endpoints-4 {
      typeof ip daddr . meta l4proto . th dport . numgen random mod 4 : ip daddr . tcp dport
      elements = { ${[...slots, "10.96.0.11 . tcp . 80 . 0 : 10.9.9.9 . 80"].join(",\n")} }
    }
    map service-ips {
      type ipv4_addr . inet_proto . inet_service : verdict
      elements = { 10.96.0.10 . tcp . 80 comment "default/web" : goto endpoints-4 }
    }
    map no-endpoint-services {
      type ipv4_addr . inet_proto . inet_service : verdict
      elements = { 10.96.0.12 . tcp . 80 : drop }
    }
    chain endpoints-4 {
      dnat ip to ip daddr . meta l4proto . th dport . numgen random mod 4 map @endpoints-4
    }
  }`;
}

/** As kube-proxy does: a chain for each. */
function theirs(...endpoints: readonly string[]): string {
  const led = endpoints.map((endpoint, at) => `${at} : goto endpoint-${endpoint}`);
  const chains = endpoints.map(
    (endpoint) => `chain endpoint-${endpoint} { meta l4proto tcp dnat to ${endpoint}:8080 }`,
  );
  return `table ip kube-proxy {
    map service-ips {
      type ipv4_addr . inet_proto . inet_service : verdict
      elements = { 10.96.0.10 . tcp . 80 : goto service-web }
    }
    map no-endpoint-services {
      type ipv4_addr . inet_proto . inet_service : verdict
      elements = { 10.96.0.12 . tcp . 80 : drop }
    }
    chain service-web { numgen random mod ${endpoints.length} vmap { ${led.join(", ")} } }
    ${chains.join("\n")}
  }`;
}

function frontends(listing: string): ReadonlyMap<string, string> {
  return new Map(readTables(listing).flatMap((table) => [...frontendsOf(table)]));
}

const [A, B, C] = ["10.1.0.1", "10.1.0.2", "10.1.0.3"];

test("tables of both proxies that lead to the same endpoints are alike, in whatever slots", () => {
  expect(frontends(ours(A, B)).size).toBe(2);
  expect(frontends(ours(A, B))).toEqual(frontends(theirs(B, A)));
});

test("an endpoint more, less or another makes a difference", () => {
  for (const other of [theirs(A, B, C), theirs(A), theirs(A, C), ours(A, C), ours(A)]) {
    expect(frontends(ours(A, B))).not.toEqual(frontends(other));
  }
});

const ADDED = { uid: "0", resourceVersion: "7", creationTimestamp: "2030-01-01T00:00:00Z", managedFields: [{}] };

/** As an API server answers, with what it adds. */
function samples() {
  const service = serviceObject(0);
  const slice = sliceObject(0, 2);
  const spec = { clusterIPs: ["10.100.0.1"], type: "ClusterIP", ...(service["spec"] as object) };
  return {
    service: { ...service, metadata: { ...service.metadata, ...ADDED }, spec, status: { loadBalancer: {} } },
    slice: { ...slice, metadata: { ...slice.metadata, ...ADDED, generation: 1 } },
    address: {
      apiVersion: "networking.k8s.io/v1",
      kind: "IPAddress",
      metadata: { name: "10.100.0.1", ...ADDED },
      spec: { parentRef: { group: "", resource: "services", namespace: "bench", name: "svc-0" } },
    },
  };
}

test("services are stored as the sample is, each with its own names, addresses and endpoints", () => {
  const stored = new Map(storedServices(samples(), { services: 3, endpoints: 2 }, 1));
  expect([...stored.keys()]).toEqual(
    [1, 2].flatMap((index) => [
      `/registry/endpointslices/bench/svc-${index}-0`,
      `/registry/ipaddresses/10.100.0.${index + 1}`,
      `/registry/services/specs/bench/svc-${index}`,
    ]),
  );
  expect(stored.get("/registry/services/specs/bench/svc-1")).toMatchObject({
    metadata: { name: "svc-1", namespace: "bench", creationTimestamp: ADDED.creationTimestamp, managedFields: [{}] },
    spec: { clusterIP: "10.100.0.2", clusterIPs: ["10.100.0.2"], type: "ClusterIP", ports: [{ port: 80 }] },
    status: { loadBalancer: {} },
  });
  const slice = stored.get("/registry/endpointslices/bench/svc-1-0");
  expect(slice).toMatchObject({ metadata: { labels: { "kubernetes.io/service-name": "svc-1" }, generation: 1 } });
  expect(slice?.["endpoints"]).toEqual(sliceObject(1, 2)["endpoints"]);
  expect(stored.get("/registry/ipaddresses/10.100.0.2")).toMatchObject({ spec: { parentRef: { name: "svc-1" } } });
  expect(addressPath(1)).toMatch(/\/10\.100\.0\.2$/);
  for (const { metadata } of stored.values()) expect(metadata["resourceVersion"]).toBeUndefined();
  expect(new Set(Array.from(stored.values(), ({ metadata }) => metadata["uid"])).size).toBe(stored.size);
});

test("a large service has as many slices as Kubernetes would give it", () => {
  const stored = [...storedServices(samples(), { services: 2, endpoints: 250 }, 1)];
  const slices = stored.filter(([key]) => key.startsWith("/registry/endpointslices/"));
  expect(slices.map(([key]) => key.split("/").at(-1))).toEqual(["svc-1-0", "svc-1-1", "svc-1-2"]);
  const endpoints = slices.flatMap(([, slice]) => slice["endpoints"] as { readonly addresses: readonly string[] }[]);
  expect(slices.map(([, slice]) => (slice["endpoints"] as unknown[]).length)).toEqual([100, 100, 50]);
  expect(new Set(endpoints.map(({ addresses }) => addresses[0])).size).toBe(250);
});
