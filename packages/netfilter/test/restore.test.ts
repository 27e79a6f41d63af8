import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  type Command,
  canonicalRule,
  type IPFamily,
  type Match,
  type PayloadSection,
  parseList,
  parseRestore,
  parseSave,
  type Rule,
  RuleParseError,
  renderCommand,
  renderRule,
  renderRuleSet,
  renderTable,
  renderTables,
  restoreLines,
  ruleEquals,
  type Table,
} from "../src/index.ts";
import { plainComment, rules, wordName } from "./arbitraries.ts";
import { goldenTexts } from "./golden.ts";

/** The rule of one -A line as iptables-save would print it. */
function canonical(words: string, family: IPFamily = "IPv4"): string | undefined {
  const [table] = parseRestore(`*nat\n-A X ${words}\nCOMMIT\n`, { family });
  const command = table?.commands[0];
  return command?.kind === "append" ? renderRule(command.rule) : undefined;
}

describe("what iptables-restore takes, in the form that iptables-save gives it back", () => {
  test.each([
    // As kube-proxy writes its rules.
    [
      '-m comment --comment "a/b cluster IP" -m tcp -p tcp -d 10.96.0.1 --dport 80 -j KUBE-SVC-A',
      '-d 10.96.0.1/32 -p tcp -m comment --comment "a/b cluster IP" -m tcp --dport 80 -j KUBE-SVC-A',
    ],
    [
      "-m tcp -p tcp -m comment --comment x -j DNAT --to-destination 10.0.0.1:80",
      "-p tcp -m tcp -m comment --comment x -j DNAT --to-destination 10.0.0.1:80",
    ],
    [
      "-m recent --name A --rcheck --reap --seconds 10 -j A",
      "-m recent --rcheck --seconds 10 --reap --name A --mask 255.255.255.255 --rsource -j A",
    ],
    [
      "-m statistic --mode random --probability 0.3333333333 -j A",
      "-m statistic --mode random --probability 0.33333333349 -j A",
    ],
    ["-m conntrack --ctstate ESTABLISHED,RELATED -j ACCEPT", "-m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT"],
    ["-m nfacct --nfacct-name packets -j DROP", "-m nfacct --nfacct-name  packets -j DROP"],
    // Marks.
    ["-j MARK --set-mark 0x4000", "-j MARK --set-xmark 0x4000/0xffffffff"],
    ["-j MARK --set-mark 0x4000/0xff", "-j MARK --set-xmark 0x4000/0x40ff"],
    ["-j MARK --set-xmark 16384", "-j MARK --set-xmark 0x4000/0xffffffff"],
    ["-j MARK --or-mark 040000", "-j MARK --set-xmark 0x4000/0x4000"],
    ["-j MARK --xor-mark 0x4000", "-j MARK --set-xmark 0x4000/0x0"],
    ["-j MARK --and-mark 0x4000", "-j MARK --set-xmark 0x0/0xffffbfff"],
    ["-m mark --mark 0x80000000/0xffffffff", "-m mark --mark 0x80000000"],
    // Addresses.
    ["-s 10.0.0.7/255.255.0.0 -j A", "-s 10.0.0.0/16 -j A"],
    ["-s 0.0.0.0/0 -j A", "-j A"],
    ["! -s 10.0.0.1 -j A", "! -s 10.0.0.1/32 -j A"],
    // Long names, order, defaults.
    [
      "--jump ACCEPT --source 1.2.3.4 --protocol 6 --in-interface eth0 ! --out-interface cali+",
      "-s 1.2.3.4/32 -i eth0 ! -o cali+ -p tcp -j ACCEPT",
    ],
    ["-p tcp --dport 80 --sport 1024: -j A", "-p tcp -m tcp --sport 1024:65535 --dport 80 -j A"],
    ["-p udp ! --dport :53 -j A", "-p udp -m udp ! --dport 0:53 -j A"],
    ["-p 132 -j A", "-p sctp -j A"],
    ["-p tcp ! --syn --dport 80 -j A", "-p tcp -m tcp --dport 80 ! --tcp-flags FIN,SYN,RST,ACK SYN -j A"],
    ["-p tcp --tcp-flags ALL ACK,FIN -j A", "-p tcp -m tcp --tcp-flags FIN,SYN,RST,PSH,ACK,URG FIN,ACK -j A"],
    ["-p tcp --tcp-flags RST NONE -j A", "-p tcp -m tcp --tcp-flags RST NONE -j A"],
    ["-p all -j A", "-j A"],
    ["-j REJECT", "-j REJECT --reject-with icmp-port-unreachable"],
    ["-g A", "-g A"],
    ["-c 3 4 -j A", "-j A"],
    ['-m comment --comment "say \\"x\\" \\\\ y"', '-m comment --comment "say \\"x\\" \\\\ y"'],
    ["-m comment --comment -j -j A", '-m comment --comment "-j" -j A'],
    ["-m state --state NEW -j A", "-m state --state NEW -j A"],
  ])("%s", (words, expected) => {
    expect(canonical(words)).toBe(expected);
  });

  test.each([
    ["-d ::1 -p tcp -j DNAT --to-destination [fd00::1]:80", "-d ::1/128 -p tcp -j DNAT --to-destination [fd00::1]:80"],
    ["-s FD00:0:0:1::9/64 -j A", "-s fd00:0:0:1::/64 -j A"],
    ["-s ::ffff:1.2.3.4 -d ::1.2.3.4 -j A", "-s ::ffff:1.2.3.4/128 -d ::1.2.3.4/128 -j A"],
    ["-p icmpv6 -j REJECT", "-p ipv6-icmp -j REJECT --reject-with icmp6-port-unreachable"],
    ["-m recent --set", "-m recent --set --name DEFAULT --mask ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff --rsource"],
  ])("IPv6: %s", (words, expected) => expect(canonical(words, "IPv6")).toBe(expected));
});

describe("kept word for word", () => {
  test.each([
    "-p tcp -m multiport --dports 80,443 -j ACCEPT",
    '-m limit --limit 5/min -j LOG --log-prefix "dropped: "',
    "-p tcp -m tcp --dport 5 --tcp-flags FIN,SYN,RST,ACK SYN -j RETURN",
    "-p tcp -m tcp --tcp-flags SYN,RST SYN -j TCPMSS --clamp-mss-to-pmtu",
    "-m statistic --mode random ! --probability 0.50000000000 -j RETURN",
    "-m conntrack ! --ctstate ESTABLISHED --ctdir ORIGINAL -j RETURN",
    "-m physdev --physdev-in veth+ -j RETURN",
    "-m recent --update --name Y --mask 255.255.255.255 --rsource -j RETURN",
    "-m addrtype ! --dst-type LOCAL --limit-iface-in -j RETURN",
    "-j CT --notrack",
    '-j NFLOG --nflog-prefix "a b" --nflog-group 2',
    "-m set --match-set a src --return-nomatch -j RETURN",
    "-p tcp -m tcp --dport http -j RETURN",
    "-j MARK --set-xmark 0x1/0x1",
  ])("%s", (words) => expect(canonical(words)).toBe(words));
});

describe("errors name line, problem and text", () => {
  test.each([
    ["*nat\n-A X -j\nCOMMIT\n", 2, "-j needs a value"],
    ["*nat\n-A X -d 10.0.0.1/33 -j A\nCOMMIT\n", 2, '"10.0.0.1/33" has no prefix length from 0 to 32'],
    ["*nat\n-A X -d example.org -j A\nCOMMIT\n", 2, '"example.org" is not an address or CIDR'],
    [
      "*nat\n-A X -p tcp --tcp-flags SYN,NO SYN -j A\n",
      2,
      'TCP flag "NO" is none of FIN, SYN, RST, PSH, ACK, URG, ALL, NONE',
    ],
    ["*nat\n-A X -p tcp --dport 65536 -j A\nCOMMIT\n", 2, 'port "65536" is not a number from 0 to 65535'],
    ["*nat\n-A X -p tcp --dport 9:8 -j A\nCOMMIT\n", 2, 'port range "9:8" ends before it begins'],
    ["*nat\n-A X -j A -j B\nCOMMIT\n", 2, "more than one target"],
    ["*nat\n-A X -d 1.1.1.1 -d 2.2.2.2\nCOMMIT\n", 2, "duplicate -d"],
    ["*nat\n-A X --dport 80\nCOMMIT\n", 2, "option --dport belongs to no match or target"],
    ["*nat\n-A X stray\nCOMMIT\n", 2, 'unexpected word "stray"'],
    ['*nat\n-A X -m comment --comment "a b\nCOMMIT\n', 2, "a quote is not closed"],
    ["*nat\n-A X -m comment\nCOMMIT\n", 2, "-m comment needs --comment"],
    ["*nat\n-A X -m recent --name a\nCOMMIT\n", 2, "-m recent needs one of --set and --rcheck"],
    ["*nat\n-A X -m conntrack --ctstate OLD\nCOMMIT\n", 2, 'unknown connection state in "OLD"'],
    ["*nat\n-A X ! -j A\nCOMMIT\n", 2, `"!" can't stand before -j`],
    ["*nat\n-A X !\nCOMMIT\n", 2, '"!" stands before nothing'],
    ["*nat\n-I X 0 -j A\nCOMMIT\n", 2, "positions count from 1"],
    ["*nat\n-F\nCOMMIT\n", 2, "-F needs a chain"],
    ["*nat\n-P INPUT DROP\nCOMMIT\n", 2, 'unknown command "-P"'],
    ["*nat\n:X MAYBE [0:0]\nCOMMIT\n", 2, 'policy "MAYBE" is neither ACCEPT, DROP nor -'],
    ["*other\nCOMMIT\n", 1, 'unknown table "other"'],
    ["-A X -j A\n", 1, "no table was begun"],
    ["*nat\n*filter\nCOMMIT\n", 2, "table nat is not committed yet"],
    ["# a comment\n\n*nat\n-A X -j A\n", 4, "table nat is not committed"],
  ])("%j", (text, line, problem) => {
    const error = caught(() => parseRestore(text));
    expect(error).toBeInstanceOf(RuleParseError);
    expect(error).toMatchObject({ line, message: expect.stringContaining(problem) });
  });

  test("the text of the line is in the error", () => {
    expect(caught(() => parseRestore("*nat\n-A X stray\nCOMMIT\n"))).toMatchObject({ text: "-A X stray" });
  });
});

test("commands in their order, a table more than once", () => {
  const text =
    "*nat\n:A - [0:0]\n-F A\n-I A 2 -j B\n-I A -j B\n-D A -j B\n-X A\nCOMMIT\n*filter\nCOMMIT\n*nat\n-X B\nCOMMIT\n";
  const rule = { matches: [], target: { kind: "jump", chain: "B" } };
  expect(parseRestore(text)).toEqual([
    {
      table: "nat",
      commands: [
        { kind: "chain", chain: "A" },
        { kind: "flush", chain: "A" },
        { kind: "insert", chain: "A", position: 2, rule },
        { kind: "insert", chain: "A", position: 1, rule },
        { kind: "delete", chain: "A", rule },
        { kind: "delete-chain", chain: "A" },
      ],
    },
    { table: "filter", commands: [] },
    { table: "nat", commands: [{ kind: "delete-chain", chain: "B" }] },
  ]);
});

function caught(run: () => unknown): unknown {
  try {
    run();
  } catch (error) {
    return error;
  }
  throw new Error("nothing was thrown");
}

test("a chain's rules at once are the same lines, and count the same, as one by one", () => {
  const rules: readonly Rule[] = [
    { matches: [], target: { kind: "accept" } },
    { matches: [], target: { kind: "drop" } },
  ];
  const appends = rules.map((rule): Command => ({ kind: "append", chain: "A", rule }));
  const make: Command = { kind: "chain", chain: "A" };
  const lines = (section: PayloadSection) => {
    const written = new Map<Table, number>();
    return { text: [...restoreLines([section], written)].join("\n"), written };
  };
  const fill = { kind: "fill", chain: "A", rules } as const;
  expect(lines({ table: "nat", commands: [{ ...fill, make: true }] })).toEqual(
    lines({ table: "nat", commands: [make, ...appends] }),
  );
  expect(lines({ table: "nat", commands: [{ ...fill, make: false }] })).toEqual(
    lines({ table: "nat", commands: appends }),
  );
  expect(lines({ table: "nat", commands: [{ ...fill, rules: [], make: false }] }).text).toBe("");
});

const FAMILIES: IPFamily[] = ["IPv4", "IPv6"];

/** A kind that is not in here does not compile. */
const MATCHES: Readonly<Record<Exclude<Match["kind"], "unknown" | "unreadable">, true>> = {
  addrtype: true,
  comment: true,
  conntrack: true,
  ipvs: true,
  mark: true,
  nfacct: true,
  physdev: true,
  recent: true,
  sctp: true,
  set: true,
  statistic: true,
  tcp: true,
  udp: true,
};

describe.each(FAMILIES)("%s", (family) => {
  const anyRule = fc.oneof(
    ...(["filter", "nat"] as const).map((table) =>
      rules({ family, table, chains: ["KUBE-A", "cali-b"], objects: true, comment: plainComment }),
    ),
  );

  test("rules with every kind of match are drawn", () => {
    const drawn = fc.sample(anyRule, { numRuns: 2_000, seed: 1 });
    const kinds = new Set<string>(drawn.flatMap(({ matches }) => matches.map(({ kind }) => kind)));
    expect(Object.keys(MATCHES).filter((kind) => !kinds.has(kind))).toEqual([]);
  });

  test("a rule reads back as itself from restore, save and list text", () => {
    fc.assert(
      fc.property(anyRule, wordName, (rule, chain) => {
        const append = renderCommand({ kind: "append", chain, rule });
        expect(parseRestore(`*nat\n${append}\nCOMMIT\n`, { family })).toEqual([
          { table: "nat", commands: [{ kind: "append", chain, rule }] },
        ]);
        const saved = parseSave(`*nat\n:${chain} - [0:0]\n[3:4] ${append}\nCOMMIT\n`, { family });
        expect(saved.get("nat")?.chains.get(chain)?.rules).toEqual([rule]);
        expect(parseList(append, "nat", { family }).chains.get(chain)?.rules).toEqual([rule]);
      }),
    );
  });

  test("a canonical rule is its own canonical form", () => {
    fc.assert(
      fc.property(anyRule, (rule) => {
        expect(canonicalRule(rule, family)).toEqual(rule);
        expect(ruleEquals(rule, structuredClone(rule))).toBe(true);
      }),
    );
  });

  test("rules are equal exactly when their texts are", () => {
    fc.assert(
      fc.property(anyRule, anyRule, (a, b) => {
        expect(ruleEquals(a, b)).toBe(renderRule(a) === renderRule(b));
      }),
    );
  });

  test("commands of every kind come back in order, however the text is cut", () => {
    const command = fc.oneof(
      fc.record({ kind: fc.constantFrom("append", "delete"), chain: wordName, rule: anyRule }),
      fc.record({
        kind: fc.constant("insert"),
        chain: wordName,
        position: fc.integer({ min: 1, max: 999 }),
        rule: anyRule,
      }),
      fc.record({ kind: fc.constantFrom("flush", "delete-chain", "chain"), chain: wordName }),
      fc.record({ kind: fc.constant("chain"), chain: wordName, policy: fc.constantFrom("ACCEPT", "DROP") }),
    );
    fc.assert(
      fc.property(fc.array(command, { maxLength: 6 }), fc.integer({ min: 1, max: 40 }), (commands, size) => {
        const text = [...renderTable({ table: "nat", commands })].join("");
        const pieces = Array.from({ length: Math.ceil(text.length / size) }, (_, at) =>
          text.slice(at * size, (at + 1) * size),
        );
        expect(parseRestore(pieces, { family })).toEqual([{ table: "nat", commands }]);
      }),
    );
  });
});

const golden = goldenTexts();

test("the golden files are there", () => {
  expect(golden.length).toBeGreaterThanOrEqual(70);
});

describe.each(golden)("$name", ({ family, text }) => {
  const withoutCounters = text.replaceAll(/\[\d+:\d+\]$/gm, "[0:0]");

  test("parses and renders to itself", () => {
    expect([...renderRuleSet(parseSave(text, { family }))].join("")).toBe(withoutCounters);
  });

  test("is understood without rest", () => {
    expect(JSON.stringify([...parseSave(text, { family }).values()].map(({ chains }) => [...chains]))).not.toContain(
      '"unknown"',
    );
  });

  test("reads as a restore payload of the same commands", () => {
    expect([...renderTables(parseRestore(text, { family }))].join("")).toBe(withoutCounters);
  });
});
