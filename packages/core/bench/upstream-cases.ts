/**
 * Prints random services with their slices, as a JSON list, for `test/fixtures/upstream/main.go` to answer: see the
 * README there. What upstream leaves to chance (two live endpoints of one address) or crashes on is not among them.
 *
 *   pnpm exec node bench/upstream-cases.ts
 */
import fc from "fast-check";

const optional = <T>(arbitrary: fc.Arbitrary<T>) => fc.option(arbitrary, { nil: undefined });
const policy = fc.constantFrom("Cluster", "Local");
const hint = fc.subarray([{ name: "z1" }, { name: "z2" }], { minLength: 1 });
const nodeHint = fc.subarray([{ name: "node-a" }, { name: "node-b" }], { minLength: 1 });

const conditions = fc.constantFrom(
  { ready: true },
  { ready: true },
  {},
  { ready: true, serving: true, terminating: false },
  { ready: false, serving: true, terminating: true },
  { ready: false, serving: false, terminating: true },
  { ready: false, serving: false, terminating: false },
  { ready: false },
  { ready: true, serving: false },
);

/** Names have numbers of their own: the API lets no number appear twice in a service. */
const ports = fc.uniqueArray(
  fc
    .record({
      name: fc.constantFrom("a", "b"),
      protocol: fc.constantFrom("TCP", "TCP", "UDP", "SCTP"),
      external: fc.boolean(),
    })
    .map(({ name, protocol, external }) => ({
      name,
      protocol,
      port: name === "a" ? 80 : 443,
      nodePort: external ? (name === "a" ? 30_080 : 30_443) : 0,
    })),
  { minLength: 1, maxLength: 2, selector: (port) => `${port.name}/${port.protocol}` },
);

const spec = fc
  .record({
    type: fc.constantFrom("ClusterIP", "NodePort", "LoadBalancer"),
    dual: fc.boolean(),
    ports,
    externalIPs: fc.subarray(["198.51.100.1", "198.051.100.002", "2001:DB8:0:0:0:0:0:1"]),
    internalTrafficPolicy: policy,
    externalTrafficPolicy: policy,
    affinity: optional(fc.constantFrom(60, 10_800)),
    healthCheckNodePort: fc.constantFrom(0, 31_000),
    loadBalancerSourceRanges: fc.subarray([" 192.0.2.77/24", "0.0.0.0/0", "2001:db8:1::/48", "10.201.0.0/16 "]),
  })
  .map(({ dual, affinity, ...rest }) => ({
    ...rest,
    clusterIP: "10.96.0.1",
    clusterIPs: dual ? ["10.96.0.1", "fd00:10:96::1"] : ["10.96.0.1"],
    ipFamilies: dual ? ["IPv4", "IPv6"] : ["IPv4"],
    ...(affinity === undefined
      ? { sessionAffinity: "None" }
      : { sessionAffinity: "ClientIP", sessionAffinityConfig: { clientIP: { timeoutSeconds: affinity } } }),
  }));

const ingress = fc.subarray([
  { ip: "203.0.113.1" },
  { ip: "203.0.113.2", ipMode: "VIP" },
  { ip: "203.0.113.3", ipMode: "Proxy" },
  { ip: "2001:db8::99" },
  { hostname: "lb.example" },
]);

const ALL_PORTS = [
  { name: "a", protocol: "TCP", port: 8080 },
  { name: "b", protocol: "TCP", port: 8443 },
  { name: "a", protocol: "UDP", port: 53 },
  { name: "b", protocol: "SCTP", port: 9 },
  { name: "b", protocol: "UDP", port: 54 },
  { name: "a", protocol: "TCP" },
];
const slicePorts = fc.oneof({ weight: 4, arbitrary: fc.constant(ALL_PORTS) }, fc.subarray(ALL_PORTS));

/** Half of the cases hint every endpoint, so that hints come to count. */
const endpointDetails = fc.boolean().chain((allHinted) =>
  fc.array(
    fc.record({
      conditions,
      nodeName: optional(fc.constantFrom("node-a", "node-b", "node-c")),
      forZones: allHinted ? hint : optional(hint),
      forNodes: allHinted ? nodeHint : optional(nodeHint),
    }),
    { minLength: 1, maxLength: 6, size: "max" },
  ),
);

const cases = fc
  .record({ spec, ingress, endpointDetails, ports: fc.tuple(slicePorts, slicePorts, slicePorts) })
  .map(({ spec: serviceSpec, ingress: ips, endpointDetails: details, ports: portsOf }) => ({
    service: {
      metadata: { namespace: "default", name: "web" },
      spec: serviceSpec,
      status: { loadBalancer: { ingress: ips } },
    },
    slices: (["IPv4", "IPv4", "IPv6"] as const).map((addressType, i) => ({
      metadata: { namespace: "default", name: `web-${i}`, labels: { "kubernetes.io/service-name": "web" } },
      addressType,
      ports: portsOf[i],
      endpoints: details
        .map((detail, n) => ({
          ...detail,
          address: addressType === "IPv6" ? `fd00:144::${n + 9}` : `10.144.0.${n + 9}`,
        }))
        .filter((_, n) => addressType === "IPv6" || n % 2 === i)
        .map(({ address, conditions: is, nodeName, forZones, forNodes }) => ({
          addresses: [address],
          conditions: is,
          nodeName,
          hints: { forZones, forNodes },
        })),
    })),
  }));

console.log(JSON.stringify(fc.sample(cases, { numRuns: 100, seed: 1 })));
