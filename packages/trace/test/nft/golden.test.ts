import { readFileSync } from "node:fs";
import { readTables } from "@fairlead/netfilter/nft";
import { describe, expect, test } from "vitest";
import { trace } from "../../src/index.ts";
import { ipv4, ipv6, OTHER_POD_HERE } from "../golden-cases.ts";
import { HOST, packet, places } from "../rule-set.ts";

const folder = new URL("../../../testkit/fixtures/golden/", import.meta.url);

function golden(name: string) {
  return { nftables: readTables(readFileSync(new URL(`${name}.nft`, folder), "utf8")) };
}

/** Where kube-proxy's modes differ: what becomes of ClusterIPs that nobody serves, and node ports on loopback. */
const OTHERWISE: Readonly<Record<string, readonly string[]>> = {
  "01-clusterip: another port": ["reject 10.96.67.75:81"],
  "01-clusterip: another address": ["drop 10.96.67.76:80"],
  "05-nodeport: node → localhost": ["→ 127.0.0.1:30105"],
  "17-sctp: TCP to the SCTP port": ["reject 10.96.1.17:80"],
  "19-other-proxy-name: a service of another proxy": ["drop 10.96.1.19:80"],
};

describe("the real kube-proxy's tables of nftables", () => {
  test.each([...ipv4, ...ipv6])("%s: %s", (scenario, what, sent, expected) => {
    expect(places(golden(scenario), sent).toSorted()).toEqual(OTHERWISE[`${scenario}: ${what}`] ?? expected);
  });

  test("every difference between the modes is a case", () => {
    const names = new Set([...ipv4, ...ipv6].map(([scenario, what]) => `${scenario}: ${what}`));
    expect(Object.keys(OTHERWISE).filter((name) => !names.has(name))).toEqual([]);
  });

  test("a client's later packets go where its first one went", () => {
    const rules = golden("12-affinity");
    const sent = packet({ ...OTHER_POD_HERE, destination: "10.96.1.12" });
    const first = trace(rules, sent, HOST);
    expect(first).toHaveLength(2);
    for (const { destination, remembered } of first) {
      const later = trace(rules, sent, { ...HOST, remembered });
      expect(later.map((outcome) => outcome.destination)).toEqual([destination]);
    }
  });
});
