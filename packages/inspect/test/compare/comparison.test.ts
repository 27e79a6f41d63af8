import { toEnd } from "@fairlead/base";
import { parseSave } from "@fairlead/netfilter";
import { readTables } from "@fairlead/netfilter/nft";
import { goldenNode, goldenPlannerOptions, TestCluster, webA1, workload } from "@fairlead/testkit";
import { describe, expect, test } from "vitest";
import { factsOf, trafficFindings } from "../../src/index.ts";

const { semantics } = factsOf("iptables");
const detectors = { IPv4: { kind: "none" } } as const;
const cluster = new TestCluster(goldenPlannerOptions(goldenNode(false), semantics, { detectors }));
cluster.put(...workload(1, { endpoints: [webA1] }).objects);
cluster.replan();
const { groups, node } = cluster.plan("IPv4");

const EXPECTED = `*nat
:PREROUTING ACCEPT [0:0]
:POSTROUTING ACCEPT [0:0]
-A PREROUTING -d 10.96.2.1/32 -p tcp -m tcp --dport 80 -j DNAT --to-destination 10.144.1.5:8080
-A POSTROUTING -s 10.144.1.5/32 -d 10.144.1.5/32 -j MASQUERADE
COMMIT
`;

/** What is found of packets from outside where the kernel has a table of another program as well. */
function findings(rules: string, { iptables = EXPECTED, objects = "" } = {}) {
  const chain = `chain forward {\n\t\ttype filter hook forward priority filter; policy accept;\n\t\t${rules}\n\t}`;
  const nftables = readTables(`table ip firewall {\n${objects}\n\t${chain}\n}\n`);
  const actual = { ruleSet: parseSave(iptables), nftables, environment: {} };
  const found = toEnd(trafficFindings(groups.values(), node, actual, undefined, semantics));
  return found.filter(({ where }) => where === "traffic tcp 198.51.100.7 → 10.96.2.1:80");
}

describe("rules of others that make no difference", () => {
  test.each([
    'tcp dport 8080 counter name "c1" accept',
    'counter name "c1"',
    'ct helper set "ftp"',
    'limit name "l1" accept',
    'quota name "q1" accept',
    "limit rate 5/second accept",
    'meta skuid 1000 log prefix "x"',
    "counter name tcp dport map @m",
  ])("%s", (rule) => {
    const objects = '\tmap m {\n\t\ttype inet_service : counter\n\t\telements = { 80 : "c1" }\n\t}';
    expect(findings(rule, { objects })).toEqual([]);
  });
});

describe("what cannot be decided is unknown, never different", () => {
  test.each([
    ['limit name "l1" drop', /limit "l1"/],
    ['quota name "q1" drop', /quota "q1"/],
    ["limit rate over 5/second drop", /limit rate/],
    ["meta skuid 1000 drop", /meta skuid/],
    ['synproxy name "y1"', /synproxy "y1"/],
    ["queue num 3", /queue/],
  ])("%s", (rule, problem) => {
    expect(findings(rule)).toMatchObject([{ kind: "unknown", what: expect.stringMatching(problem) }]);
  });
});

test("what differs whatever such a rule does is different", () => {
  const iptables = EXPECTED.replace("10.144.1.5:", "10.144.1.6:");
  expect(findings("limit rate over 5/second drop", { iptables })).toMatchObject([{ kind: "different" }]);
  expect(findings("limit rate 5/second accept", { iptables })).toMatchObject([
    { kind: "different", what: "10.144.1.6:8080, expected 10.144.1.5:8080" },
  ]);
});
