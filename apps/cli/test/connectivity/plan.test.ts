import { describe, expect, test } from "vitest";
import { type Ground, PLACES, type ServiceName, type TestService } from "../../src/commands/connectivity/model.ts";
import { type Case, casesOf } from "../../src/commands/connectivity/plan.ts";

const NAMES: readonly ServiceName[] = [
  "web",
  "web-local",
  "web-internal",
  "web-sticky",
  "web-none",
  "web-headless",
  "web-hairpin",
];
const EXTERNAL: readonly ServiceName[] = ["web", "web-local"];

function service(name: ServiceName, at: number): TestService {
  const own = { IPv4: `10.96.0.${at}`, IPv6: `fd96::${at}` };
  const isExternal = EXTERNAL.includes(name);
  return {
    name,
    clusterIPs: name === "web-headless" ? {} : own,
    port: 80,
    ...(isExternal && { nodePort: 30_000 + at }),
    externalIPs: isExternal ? { IPv4: `192.0.2.${at}` } : {},
    loadBalancerIPs: isExternal ? { IPv4: `192.0.2.${100 + at}` } : {},
  };
}

const GROUND: Ground = {
  namespace: "test",
  families: ["IPv4", "IPv6"],
  here: { name: "node-a", addresses: { IPv4: "172.30.0.11", IPv6: "fd30::11" } },
  there: { name: "node-b", addresses: { IPv4: "172.30.0.12", IPv6: "fd30::12" } },
  servers: {
    "web-a": { name: "web-a", addresses: { IPv4: "10.144.1.5", IPv6: "fd44:1::5" } },
    "web-b": { name: "web-b", addresses: { IPv4: "10.144.2.5", IPv6: "fd44:2::5" } },
  },
  services: NAMES.map((name, at) => service(name, at + 1)),
  places: PLACES,
  dns: true,
  routed: true,
};

function find(cases: readonly Case[], of: Partial<Case>): readonly Case[] {
  return cases.filter((one) => Object.entries(of).every(([name, value]) => one[name as keyof Case] === value));
}

describe("the cases", () => {
  const cases = casesOf(GROUND);

  test("each has a number of its own, and every service is asked in every family", () => {
    expect(new Set(cases.map(({ probe }) => probe.id)).size).toBe(cases.length);
    for (const name of NAMES) {
      for (const family of GROUND.families) expect(find(cases, { service: name, family })).not.toEqual([]);
    }
  });

  test("every frontend of a service with all of them is asked from every place that has a route to it", () => {
    const places = (frontend: string) =>
      find(cases, { service: "web", family: "IPv4", frontend }).map(({ place }) => place);
    const inside = PLACES.filter((place) => place !== "outside");
    expect(places("cluster-ip")).toEqual(inside);
    expect(places("cluster-ip, UDP")).toEqual(inside);
    for (const frontend of ["node-port of node-a", "node-port of node-b", "external-ip", "load-balancer"]) {
      expect(places(frontend)).toEqual(PLACES);
    }
  });

  test("a Local frontend answers where its endpoint is, and nobody answers where there is none", () => {
    const [here] = find(cases, {
      service: "web-local",
      frontend: "node-port of node-a",
      family: "IPv4",
      place: "outside",
    });
    expect(here?.probe.expected).toMatchObject({
      kind: "answered",
      by: ["web-a"],
      notSeen: expect.arrayContaining(["172.30.0.11"]),
    });
    const there = find(cases, { service: "web-local", frontend: "node-port of node-b", family: "IPv4" });
    expect(there.map(({ place, probe }) => [place, probe.expected.kind])).toEqual([["outside", "unanswered"]]);
  });

  test("an endpoint sees the pod that asks a ClusterIP, and whoever else asks need not be seen", () => {
    const [pod] = find(cases, { service: "web", frontend: "cluster-ip", place: "pod-there", family: "IPv6" });
    expect(pod?.probe).toMatchObject({ address: "fd96::1", expected: { seesClient: true, spread: "each" } });
    const [node] = find(cases, { service: "web", frontend: "cluster-ip", place: "node-there", family: "IPv6" });
    expect(node?.probe.expected).not.toHaveProperty("seesClient");
  });
});

test("without a route the outside does not ask external addresses, and without a DNS nobody asks for names", () => {
  const cases = casesOf({ ...GROUND, routed: false, dns: false });
  expect(find(cases, { frontend: "external-ip", place: "outside" })).toEqual([]);
  expect(find(cases, { frontend: "external-ip", place: "pod-here" })).not.toEqual([]);
  expect(find(cases, { service: "web-headless" })).toEqual([]);
});
