import { toEnd } from "@fairlead/base";
import { parseSave } from "@fairlead/netfilter";
import { readTables } from "@fairlead/netfilter/nft";
import { describe, expect, test } from "vitest";
import { compareProbes } from "../../src/index.ts";

const packet = {
  family: "IPv4",
  protocol: "tcp",
  source: "198.51.100.7",
  destination: "10.96.0.80",
  sport: 40_000,
  dport: 80,
  inInterface: "eth0",
} as const;

const EXPECTED = `*nat
:PREROUTING ACCEPT [0:0]
-A PREROUTING -d 10.96.0.80/32 -p tcp -m tcp --dport 80 -j DNAT --to-destination 10.144.1.5:8080
COMMIT
`;

/** What is found where the kernel has a table of another program as well. */
function findings(rules: string, { iptables = EXPECTED, objects = "" } = {}) {
  const chain = `chain forward {\n\t\ttype filter hook forward priority filter; policy accept;\n\t\t${rules}\n\t}`;
  const nftables = readTables(`table ip firewall {\n${objects}\n\t${chain}\n}\n`);
  const expected = { ruleSet: parseSave(EXPECTED), environment: {} };
  const actual = { ruleSet: parseSave(iptables), nftables, environment: {} };
  return toEnd(compareProbes(expected, actual, [{ service: "default/web", packet }]));
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
  const iptables = EXPECTED.replace("10.144.1.5", "10.144.1.6");
  expect(findings("limit rate over 5/second drop", { iptables })).toMatchObject([{ kind: "different" }]);
  expect(findings("limit rate 5/second accept", { iptables })).toMatchObject([
    { kind: "different", what: "10.144.1.6:8080, expected 10.144.1.5:8080" },
  ]);
});
