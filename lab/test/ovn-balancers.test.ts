import { decodeEndpointSlice, decodeService } from "@fairlead/core";
import { expect, test } from "vitest";
import {
  balancerCommands,
  createBalancers,
  type VirtualAddress,
  virtualAddresses,
  vpcToWrite,
} from "../src/cni/ovn/controller/balancers.ts";

const metadata = { namespace: "default", name: "web" };
const PORTS = [
  { name: "http", port: 80, protocol: "TCP" },
  { name: "dns", port: 53, protocol: "UDP" },
];

function service(spec: Readonly<Record<string, unknown>> = {}, annotations: Readonly<Record<string, string>> = {}) {
  const raw = { metadata: { ...metadata, annotations }, spec: { clusterIP: "10.96.0.9", ports: PORTS, ...spec } };
  const { object } = decodeService(raw, undefined, { annotations: new Set(Object.keys(annotations)) });
  if (object === undefined) throw new Error("not a Service");
  return object;
}

/** @param ready by address */
function slice(ready: Readonly<Record<string, boolean>>, addressType = "IPv4") {
  const { object } = decodeEndpointSlice({
    metadata: { ...metadata, labels: { "kubernetes.io/service-name": "web" } },
    addressType,
    ports: [
      { name: "http", port: 8080, protocol: "TCP" },
      { name: "dns", port: 5353, protocol: "UDP" },
    ],
    endpoints: Object.entries(ready).map(([address, ready]) => ({ addresses: [address], conditions: { ready } })),
  });
  if (object === undefined) throw new Error("not an EndpointSlice");
  return object;
}

test("every ready endpoint of a service, of whatever network, is in the cluster's load balancer of its protocol", () => {
  const slices = [slice({ "10.244.1.11": true, "10.144.1.11": true, "10.144.1.12": false })];
  expect(virtualAddresses(service(), slices)).toEqual([
    { balancer: "cluster-tcp-loadbalancer", at: "10.96.0.9:80", backends: "10.244.1.11:8080,10.144.1.11:8080" },
    { balancer: "cluster-udp-loadbalancer", at: "10.96.0.9:53", backends: "10.244.1.11:5353,10.144.1.11:5353" },
  ]);
});

test("a service with affinity is in another one, and each family has its own endpoints", () => {
  const dual = service({
    clusterIPs: ["10.96.0.9", "fd00:10:96::9"],
    ports: PORTS.slice(0, 1),
    sessionAffinity: "ClientIP",
  });
  expect(virtualAddresses(dual, [slice({ "10.244.1.11": true }), slice({ "fd00:144::1": true }, "IPv6")])).toEqual([
    { balancer: "cluster-tcp-session-loadbalancer", at: "10.96.0.9:80", backends: "10.244.1.11:8080" },
    { balancer: "cluster-tcp-session-loadbalancer", at: "[fd00:10:96::9]:80", backends: "[fd00:144::1]:8080" },
  ]);
});

test("without ready endpoints, and without its Service, it is in none", () => {
  expect(virtualAddresses(service(), [slice({ "10.244.1.11": false })])).toEqual([]);
  expect(virtualAddresses(undefined, [slice({ "10.244.1.11": true })])).toEqual([]);
});

test("only what differs is written", () => {
  const at = (backends: string, balancer = "tcp"): VirtualAddress => ({ balancer, at: "10.96.0.9:80", backends });
  expect(balancerCommands([], [at("a")])).toEqual([["set", "load_balancer", "tcp", 'vips:"10.96.0.9:80"="a"']]);
  expect(balancerCommands([at("a")], [at("a")])).toEqual([]);
  expect(balancerCommands([at("a")], [])).toEqual([["remove", "load_balancer", "tcp", "vips", '"10.96.0.9:80"']]);
  expect(balancerCommands([at("a")], [at("a", "tcp-session")])).toEqual([
    ["remove", "load_balancer", "tcp", "vips", '"10.96.0.9:80"'],
    ["set", "load_balancer", "tcp-session", 'vips:"10.96.0.9:80"="a"'],
  ]);
});

test("six load balancers are on every switch", () => {
  const commands = createBalancers(["pods-1", "pods-2"]);
  expect(commands.filter(([verb]) => verb === "create")).toHaveLength(6);
  for (const name of ["cluster-tcp-loadbalancer", "cluster-udp-session-loadbalancer"]) {
    for (const one of ["pods-1", "pods-2"]) expect(commands).toContainEqual(["ls-lb-add", one, name]);
  }
});

test("each Service gets the default VPC, unless another one is written and no endpoint is OVN's", () => {
  const vpc = "ovn.kubernetes.io/vpc";
  const written = (annotations: Readonly<Record<string, string>>, endpoint: string) =>
    vpcToWrite({ service: service({}, annotations), slices: [slice({ [endpoint]: true })] }, ["10.244.0.0/16"]);
  expect(written({}, "10.144.1.11")).toBe("ovn-cluster");
  expect(written({ [vpc]: "ovn-cluster" }, "10.144.1.11")).toBeUndefined();
  expect(written({ [vpc]: "other" }, "10.144.1.11")).toBeUndefined();
  expect(written({ [vpc]: "other" }, "10.244.1.11")).toBe("ovn-cluster");
});
