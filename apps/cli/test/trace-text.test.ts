import type { Connection } from "@fairlead/kernel";
import type { Outcome } from "@fairlead/trace";
import { describe, expect, test } from "vitest";
import { knownText } from "../src/commands/trace/known-text.ts";
import { mergedWays } from "../src/commands/trace/merged-ways.ts";
import { fairlead } from "./support/run.ts";

const connection = (sport: number, source: string) =>
  ({
    original: { source: "10.144.1.9", sourcePort: sport, destination: "10.96.0.10", destinationPort: 80 },
    reply: { source, sourcePort: 8080, destination: "10.144.1.9", destinationPort: sport },
  }) as unknown as Connection;

describe("known connections", () => {
  test("one is named by its port", () => {
    expect(knownText([connection(1001, "10.144.1.5")])).toBe("known: port 1001 → 10.144.1.5:8080\n");
    expect(knownText([])).toBe("");
  });

  test("those on the fast path meet no rules", () => {
    const offloaded = { ...connection(1001, "10.144.1.5"), offloaded: true } as const;
    const what = "packets of a connection on the fast path meet no rules";
    expect(knownText([offloaded])).toBe(`known: port 1001 → 10.144.1.5:8080, offloaded: ${what}\n`);
    expect(knownText([offloaded, connection(1002, "10.144.1.5")])).toBe(
      `known: 2 connections → 10.144.1.5:8080, 1 of them offloaded: ${what}\n`,
    );
  });

  test("many are counted by where they lead, most first, and a few places are named", () => {
    const all = Array.from({ length: 8 }, (_, place) =>
      Array.from({ length: 20 - place }, (_, at) => connection(1000 + at, `10.144.1.${place}`)),
    ).flat();
    const lines = knownText(all).trimEnd().split("\n");
    expect(lines[0]).toBe("known: 20 connections → 10.144.1.0:8080");
    expect(lines).toHaveLength(6);
    expect(lines.at(-1)).toBe("known: 42 more, to 3 other places");
  });
});

describe("ways", () => {
  const outcome = (probability: number, address: string, more: Partial<Outcome> = {}): Outcome => ({
    probability,
    verdict: "accept",
    hook: "POSTROUTING",
    table: "nat",
    path: "forward",
    destination: { address, port: 8080 },
    translated: true,
    redirected: false,
    masqueraded: false,
    source: { address: "10.144.1.9", port: 40_000 },
    mark: 0,
    visits: [],
    recentlySeen: [],
    remembered: [],
    ...more,
  });

  test("those to one end are one, with the probability of all and the way that is likeliest", () => {
    const likeliest = outcome(0.25, "10.144.1.5", { mark: 7 });
    const merged = mergedWays([outcome(0.0625, "10.144.1.5"), outcome(0.5, "10.144.1.6"), likeliest]);
    expect(merged.map(({ outcome: { probability, mark }, ways }) => ({ probability, mark, ways }))).toEqual([
      { probability: 0.3125, mark: 7, ways: 2 },
      { probability: 0.5, mark: 0, ways: 1 },
    ]);
  });

  test("another verdict, place, source or assumption is another end", () => {
    const all = [
      outcome(0.1, "10.144.1.5"),
      outcome(0.1, "10.144.1.5", { masqueraded: true }),
      outcome(0.1, "10.144.1.5", { outInterface: "eth1" }),
      outcome(0.1, "10.144.1.5", { verdict: "drop", hook: "FORWARD", table: "filter" }),
      outcome(0.1, "10.144.1.5", { verdict: "drop", hook: "INPUT", table: "filter" }),
      outcome(0.1, "10.144.1.5", { routeUnknown: "no answer" }),
    ];
    expect(mergedWays(all)).toHaveLength(all.length);
  });
});

test("in nftables mode a service with three endpoints is three ways", async () => {
  const objects = [
    {
      apiVersion: "v1",
      kind: "Service",
      metadata: { name: "web", namespace: "shop" },
      spec: { clusterIP: "10.96.0.10", clusterIPs: ["10.96.0.10"], ipFamilies: ["IPv4"], ports: [{ port: 80 }] },
    },
    {
      apiVersion: "discovery.k8s.io/v1",
      kind: "EndpointSlice",
      metadata: { name: "web-1", namespace: "shop", labels: { "kubernetes.io/service-name": "web" } },
      addressType: "IPv4",
      ports: [{ name: "", port: 8080, protocol: "TCP" }],
      endpoints: ["5", "6", "7"].map((last) => ({ addresses: [`10.144.1.${last}`], conditions: { ready: true } })),
    },
  ];
  const argv = ["trace", "-f", "-", "--node", "node-a", "--mode", "nftables", "--cluster-cidr", "10.144.0.0/16"];
  const { out } = await fairlead([...argv, "--from", "pod", "--to", "shop/web"], { stdin: JSON.stringify(objects) });
  expect([...out.matchAll(/^([\d.]+) % → (\S+)/gm)].map(([, , end]) => end)).toEqual([
    expect.stringMatching(/^10\.144\.1\.[567]:8080/),
    expect.stringMatching(/^10\.144\.1\.[567]:8080/),
    expect.stringMatching(/^10\.144\.1\.[567]:8080/),
  ]);
  expect(out).toContain("the likeliest of ");
});
