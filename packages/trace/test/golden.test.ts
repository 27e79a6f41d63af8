import { readFileSync } from "node:fs";
import { parseSave, type RuleSet, ServerReader } from "@fairlead/netfilter";
import { describe, expect, test } from "vitest";
import { type Environment, type Packet, packetSets } from "../src/index.ts";
import { HOST, only, ownPacket, packet, places } from "./rule-set.ts";

const folder = new URL("../../testkit/fixtures/golden/", import.meta.url);

function read(name: string): string {
  return readFileSync(new URL(name, folder), "utf8");
}

function golden(name: string): RuleSet {
  return parseSave(read(`${name}.iptables`));
}

const OTHER_POD_HERE = { source: "10.144.1.9", inInterface: "cali2" } as const;
const OUTSIDE = { source: "198.51.100.7", inInterface: "eth0" } as const;
const STRANGER = { source: "198.51.101.7", inInterface: "eth0" } as const;

/** Packets to all services of all recordings are compared with plans in `inspect` and in the cli. */
describe("the real kube-proxy's rules", () => {
  test("a client's later packets go where its first one went, until the time is over", () => {
    const rules = golden("12-affinity");
    const sent = packet({ ...OTHER_POD_HERE, destination: "10.96.1.12" });
    const list = "KUBE-SEP-4R4M4HSXC7XMDVED";
    const seen = (seconds: number): Environment => ({
      ...HOST,
      recent: new Map([[list, new Map([["10.144.1.9", [seconds]]])]]),
    });
    expect(places(rules, sent, seen(599))).toEqual(["→ 10.144.2.6:8080"]);
    expect(only(rules, sent, seen(599)).recentlySeen).toEqual([{ list, address: "10.144.1.9" }]);
    expect(places(rules, sent, seen(601))).toHaveLength(2);
  });

  test("packets of unknown connections are dropped on their way on", () => {
    expect(only(golden("01-clusterip"), packet({ state: "INVALID" }))).toMatchObject({
      verdict: "drop",
      hook: "FORWARD",
    });
  });

  test("127.0.0.0/8 is closed to outsiders", () => {
    const sent = packet({ destination: "127.0.0.1", dport: 10_249 });
    expect(only(golden("01-clusterip"), sent)).toMatchObject({ verdict: "drop", hook: "INPUT" });
  });

  test("the chains on the way are reported", () => {
    const { visits } = only(golden("01-clusterip"), ownPacket({ destination: "10.96.67.75" }));
    expect(visits.filter(({ table }) => table === "nat").map(({ chain, index }) => `${chain} ${index}`)).toEqual([
      "OUTPUT 0",
      "KUBE-SERVICES 1",
      "KUBE-SVC-RH2G6EKXTJDCSNM7 0",
      "KUBE-MARK-MASQ 0",
      "KUBE-SVC-RH2G6EKXTJDCSNM7 1",
      "KUBE-SEP-ZMODNQBWAQHJ2KQZ 1",
      "POSTROUTING 0",
      "KUBE-POSTROUTING 1",
      "KUBE-POSTROUTING 2",
    ]);
  });
});

/** In ipvs mode iptables only marks and filters; the services' addresses are the host's own there. */
describe("the real kube-proxy's virtual servers, sets and rules", () => {
  const text = read("10-lb-source-ranges.ipvs");
  const part = (name: string) => new RegExp(`^# ${name}\\n((?:[^#].*\\n)*)`, "m").exec(text)?.[1] ?? "";
  const rules = parseSave(part("iptables"));
  const reader = new ServerReader();
  const complete = part("ipvsadm")
    .split("\n")
    .map((line) => reader.push(line));
  const servers = [...complete, reader.end()].filter((server) => server !== undefined);
  const environment: Environment = {
    ...HOST,
    localAddresses: ["10.201.0.60", "10.96.0.1", "10.96.1.10", "203.0.113.10"],
    sets: packetSets(part("ipset")),
    ipvs: { servers, conntrack: true },
  };
  const spread = ["→ 10.144.1.5:8080 50.0%", "→ 10.144.2.6:8080 50.0%"];
  const masqueraded = ["→ 10.144.1.5:8080 masq 50.0%", "→ 10.144.2.6:8080 masq 50.0%"];

  test.each<[what: string, fields: Partial<Packet>, expected: string[]]>([
    ["an allowed source", { ...OUTSIDE, destination: "203.0.113.10" }, masqueraded],
    ["another source", { ...STRANGER, destination: "203.0.113.10" }, ["drop 203.0.113.10:80"]],
    ["a pod to a ClusterIP", { ...OTHER_POD_HERE, destination: "10.96.1.10" }, spread],
    ["outside to a ClusterIP", { ...STRANGER, destination: "10.96.1.10" }, masqueraded],
    ["a port that no service has", { ...STRANGER, destination: "10.96.1.10", dport: 81 }, ["reject 10.96.1.10:81"]],
    ["a node port", { ...STRANGER, destination: "10.201.0.60", dport: 30_110 }, masqueraded],
  ])("%s", (_, fields, expected) => {
    expect(places(rules, packet(fields), environment).toSorted()).toEqual(expected);
  });

  test("the node, which is in the ranges, from the address that it has for the service", () => {
    const sent = ownPacket({ source: "203.0.113.10", destination: "203.0.113.10" });
    expect(places(rules, sent, environment).toSorted()).toEqual(masqueraded);
  });
});
