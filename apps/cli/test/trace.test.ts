import type { Connection } from "@fairlead/kernel";
import { endpointSlice, service } from "@fairlead/testkit";
import type { Outcome } from "@fairlead/trace";
import { describe, expect, test } from "vitest";
import { knownText, mergedWays } from "../src/commands/trace/text.ts";
import { ends, iptables } from "./support/recorded.ts";
import { fairlead } from "./support/run.ts";

const FACTS = ["--cluster-cidr", "10.144.0.0/16", "--node-address", "10.201.0.10"];
const over = (rules: string, ...more: readonly string[]) =>
  fairlead(["trace", "--rules", "-", ...FACTS, ...more], { stdin: rules });

describe("over the real kube-proxy's rules", () => {
  test.each([
    ["pod", "10.96.1.10:80", ["accept 10.144.1.5:8080 0.5", "accept 10.144.2.6:8080 0.5"], 0],
    [
      "outside",
      "10.96.1.10:80",
      ["accept 10.144.1.5:8080 0.5 masqueraded", "accept 10.144.2.6:8080 0.5 masqueraded"],
      0,
    ],
    [
      "node",
      "10.96.1.10:80/tcp",
      ["accept 10.144.1.5:8080 0.5 masqueraded", "accept 10.144.2.6:8080 0.5 masqueraded"],
      0,
    ],
    ["192.0.2.7", "203.0.113.10:80", ["drop 203.0.113.10:80 1"], 1],
    [
      "198.51.100.7",
      "203.0.113.10:80",
      ["accept 10.144.1.5:8080 0.5 masqueraded", "accept 10.144.2.6:8080 0.5 masqueraded"],
      0,
    ],
    [
      "outside",
      "10.201.0.10:30110",
      ["accept 10.144.1.5:8080 0.5 masqueraded", "accept 10.144.2.6:8080 0.5 masqueraded"],
      0,
    ],
    ["pod", "10.96.1.10:81", ["accept 10.96.1.10:81 1"], 0],
  ])("from %s to %s", async (from, to, expected, exit) => {
    const { out, code } = await over(iptables, "--from", from, "--to", to, "-o", "json");
    expect(ends(out)).toEqual(expected);
    expect(code).toBe(exit);
  });

  test("the text names each rule with its place, and its line in the text", async () => {
    const { out } = await over(iptables, "--from", "pod", "--to", "10.96.1.10:80");
    const [, chain, number, line] = /nat (KUBE-SEP-\S+) (\d+) \(line (\d+)\) .*10\.144\.1\.5:8080/.exec(out) ?? [];
    expect(iptables.split("\n")[Number(line) - 1]).toContain(`-A ${chain} `);
    expect(iptables.split("\n").filter((one) => one.startsWith(`-A ${chain} `))[Number(number) - 1]).toContain(
      "10.144.1.5:8080",
    );
    expect(out).toContain("50 % → 10.144.1.5:8080");
  });
});

test.each([
  ["127.0.0.1", [], "nat OUTPUT"],
  ["10.201.0.10", [], "nat OUTPUT"],
  ["127.0.0.1", ["--in-interface", "eth0"], "nat PREROUTING"],
  ["127.0.0.1", ["--in-interface", "lo"], "nat PREROUTING"],
])("from %s %j the packet begins at %s", async (from, more, chain) => {
  const { out } = await over(iptables, "--from", from, "--to", "10.96.1.10:80", ...more);
  expect(out).toContain(`${chain} `);
  expect(out).not.toContain(chain === "nat OUTPUT" ? "nat PREROUTING" : "nat OUTPUT");
});

test("what cannot be decided is reported, never guessed", async () => {
  const rules =
    "*filter\n:INPUT DROP [0:0]\n-A INPUT -p tcp -m tcp --dport 22 -m limit --limit 6/min -j ACCEPT\nCOMMIT\n";
  const { out, code } = await over(rules, "--from", "outside", "--to", "10.201.0.10:22");
  expect(out).toContain("if filter INPUT 1 (line 3) matches");
  expect(out).toContain("if filter INPUT 1 (line 3) does not match");
  expect(code).toBe(1);
});

test.each([
  [["--to", "10.96.0.1"], "--to=10.96.0.1: must be ADDRESS:PORT/PROTOCOL"],
  [["--to", "10.96.0.1:70000"], "--to=70000: a port is a number from 1 to 65535"],
  [["--to", "10.96.0.1:80", "--from", "nowhere"], "--from=nowhere: must be an address, pod, node or outside"],
  [["--to", "10.96.0.1:80", "--from", "fd00::1"], "--from=fd00::1: must be IPv4, as --to is"],
  [["--to", "[fd00::1]:80", "--from", "pod"], "--from=pod: give the pods' IPv6 CIDR with --cluster-cidr"],
  [["--to", "10.96.0.1:80", "--route", "10.0.0.0/8"], "--route=10.0.0.0/8: must be CIDR=INTERFACE"],
  [["--to", "10.96.0.1:80", "--live"], "mutually exclusive"],
])("%j is refused", async (more, problem) => {
  const { err, code } = await over(iptables, ...more);
  expect(err).toContain(problem);
  expect(code).toBe(2);
});

test.each([
  [
    "iptables -L",
    "Chain PREROUTING (policy ACCEPT)\ntarget     prot opt source               destination\n",
    "iptables-save",
  ],
  ["iptables -S", "-P INPUT ACCEPT\n-N KUBE-SERVICES\n", "give the output of iptables-save"],
  ["ipset save", "create KUBE-LOOP-BACK hash:ip,port,ip family inet\n", "give the output of iptables-save"],
  ["a terminal", "root@node-a:~# iptables-save\n*nat\nCOMMIT\n", "leave out the prompt"],
  ["iptables-save | grep", "-A KUBE-MARK-MASQ -j MARK --set-xmark 0x4000/0x4000\n", "with *nat and COMMIT"],
  ["ipvsadm -Ln", "IP Virtual Server version 1.2.1 (size=4096)\nProt LocalAddress:Port Scheduler Flags\n", "--on NODE"],
  ["nft -j", '{"nftables": [{"metainfo": {"version": "1.0.6"}}]}\n', "nft list ruleset, without -j"],
  ["Markdown", "```txt\n# nft list ruleset\ntable ip kube-proxy {\n}\n```\n", "leave out its lines with ```"],
])("what %s prints is refused with what is read in its place", async (_name, text, hint) => {
  const to = ["--from", "198.51.100.7", "--to", "203.0.113.9:80"];
  const { code, err } = await fairlead(["trace", "--rules", "-", ...to], { stdin: text });
  expect(err).toMatch(/^--rules=-: line 1: /);
  expect(err).toContain(hint);
  expect(code).toBe(3);
});

test.each([
  ["", "is empty: run iptables-save, or nft list ruleset, as root"],
  ["\n\n", "is empty"],
  ["*nat\n:PREROUTING ACCEPT [0:0]\n", "the text ends within table nat"],
  ["table ip nat {\n\tchain c {\n\t\ttype nat hook prerouting priority -100;\n", "the text ends within table ip nat"],
  ["table ip nat {\n\tchain c {\n\t}\n", "the text ends within table ip nat"],
])("%j is half a listing or none, and no way of a packet", async (text, problem) => {
  const to = ["--from", "198.51.100.7", "--to", "203.0.113.9:80"];
  const { code, err, out } = await fairlead(["trace", "--rules", "-", ...to], { stdin: text });
  expect(err).toContain(problem);
  expect([code, out]).toEqual([3, ""]);
});

test("an extension of iptables in what nft lists: the program that prints it in full is named", async () => {
  const rule = 'xt match "statistic" counter packets 1 bytes 60 accept';
  const stdin = `table ip nat {\n\tchain c {\n\t\ttype nat hook prerouting priority -100; policy accept;\n\t\t${rule}\n\t}\n}\n`;
  const { out } = await fairlead(["trace", "--rules", "-", "--from", "198.51.100.7", "--to", "203.0.113.9:80"], {
    stdin,
  });
  expect(out).toContain("iptables-nft-save prints in full");
});

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

test("in nftables mode a service with three endpoints is three ways, and a Gateway's is named as such", async () => {
  const gateway = `${"long.".repeat(19)}names`;
  const annotations = { "fairlead.dev/gateway-routes": "sql=shop/db" };
  const ports = [{ name: "sql", port: 80, nodePort: 30_080 }];
  const sql = { namespace: "shop", service: "web", family: "IPv4", ports: [{ name: "sql", port: 8080 }] } as const;
  const objects = [
    service("web", { namespace: "shop", type: "NodePort", clusterIPs: ["10.96.0.10"], ports, annotations, gateway }),
    endpointSlice("web-1", { ...sql, endpoints: ["5", "6", "7"].map((last) => ({ address: `10.144.1.${last}` })) }),
  ];
  const argv = ["trace", "-f", "-", "--node", "node-a", "--mode", "nftables", "--cluster-cidr", "10.144.0.0/16"];
  const traced = (...more: readonly string[]) => fairlead([...argv, ...more], { stdin: JSON.stringify(objects) });
  const { out } = await traced("--from", "pod", "--to", "shop/web");
  expect([...out.matchAll(/^([\d.]+) % → (\S+)/gm)].map(([, , end]) => end)).toEqual([
    expect.stringMatching(/^10\.144\.1\.[567]:8080/),
    expect.stringMatching(/^10\.144\.1\.[567]:8080/),
    expect.stringMatching(/^10\.144\.1\.[567]:8080/),
  ]);
  expect(out).toContain("the likeliest of ");
  const owner = `Gateway shop/${gateway}, TCPRoute shop/db; its routes: fairlead explain gateway shop/${gateway}`;
  expect(out).toContain(`\nto ${owner}\n`);
  const atNode = await traced("--from", "outside", "--to", ":30080", "--node-address", "192.0.2.1", "-o", "json");
  expect(JSON.parse(atNode.out)).toMatchObject({ gateway: `shop/${gateway}`, route: "TCPRoute shop/db" });
});
