import { toEnd } from "@fairlead/base";
import { parseSave } from "@fairlead/netfilter";
import { type NftTable, readTables, tableText } from "@fairlead/netfilter/nft";
import { goldenScenario, goldenScenarios } from "@fairlead/testkit";
import { runs } from "@fairlead/tooling/runs";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { compareTraffic, dryTables, type TrafficOutcome, waysText } from "../../src/index.ts";
import { planned, settingsOf } from "../support/scenario.ts";

const NODE_ADDRESS = "10.201.0.10";
const environment = {
  localAddresses: [NODE_ADDRESS],
  outInterface: (to: string) => (to === NODE_ADDRESS || to.startsWith("127.") ? "lo" : "eth0"),
};
const state = (text: string) => ({ ruleSet: parseSave(text), environment });
const compare = (before: string, after: string) => compareTraffic(state(before), state(after), "IPv4", NODE_ADDRESS);

function lines(before: string, after: string): string[] {
  const { changes } = compare(before, after);
  return changes.map(({ destination, from, before: old, after: now }) => {
    return `${destination} from ${from.join(", ")}: ${fateText(old)} → ${fateText(now)}`;
  });
}

function fateText(fate: TrafficOutcome): string {
  return "problem" in fate ? `? ${fate.problem}` : waysText(fate.ways);
}

test.each(goldenScenarios())(
  "$name: nothing differs from itself, comments and order of services aside",
  ({ iptables }) => {
    const renamed = iptables.replaceAll(/--comment "[^"]*"/g, '--comment "x"').replaceAll("KUBE-SVC-", "OTHER-");
    const { changes, compared } = compare(iptables, renamed);
    expect(changes).toEqual([]);
    expect(compared).toBeGreaterThan(0);
  },
);

describe("a plan, and a kernel in which a pod network masquerades", () => {
  const { iptables: plan } = goldenScenario("05-nodeport");
  const masquerades = "-A POSTROUTING -s 10.144.0.0/16 ! -d 10.144.0.0/16 -j MASQUERADE";
  const kernel = plan.replace(
    /^(-A POSTROUTING .*)$/m,
    `$1\n${masquerades}\n-A POSTROUTING -d 10.144.0.0/16 -j MASQUERADE`,
  );
  const sides = (kernelText: string) => [state(plan), state(kernelText)] as const;

  test("do the same, from either side, and it says how many are masqueraded", () => {
    const [before, after] = sides(kernel);
    const found = compareTraffic(before, after, "IPv4", NODE_ADDRESS, "before");
    expect(found.changes).toEqual([]);
    expect(found.masqueraded).toBeGreaterThan(0);
    expect(compareTraffic(after, before, "IPv4", NODE_ADDRESS, "after")).toEqual(found);
  });

  test("two kernels differ by it", () => {
    const [before, after] = sides(kernel);
    expect(compareTraffic(before, after, "IPv4", NODE_ADDRESS).changes).not.toEqual([]);
  });

  test("the proxy's own masquerading is not excused", () => {
    const [before, after] = sides(plan.replace(/^-A KUBE-MARK-MASQ .*\n/m, ""));
    expect(compareTraffic(before, after, "IPv4", NODE_ADDRESS, "before").changes).not.toEqual([]);
  });
});

describe("one rule in another way", () => {
  const { iptables } = goldenScenario("05-nodeport");

  test("a share: both frontends, everybody", () => {
    const found = lines(iptables, iptables.replace("0.50000000000", "0.25000000000"));
    expect(found.map((line) => line.split(":")[0])).toContain("tcp 10.96.1.5");
    expect(found.find((line) => line.startsWith("tcp node port 30105"))).toMatch(/50 %.*→ .*25 %/);
  });

  test("a frontend that is gone is untouched, and only that one", () => {
    const found = lines(iptables, iptables.replace(/^-A KUBE-SERVICES -d 10\.96\.1\.5.*\n/m, ""));
    expect(found).not.toEqual([]);
    for (const line of found) expect(line).toMatch(/^tcp 10\.96\.1\.5:80 from .* → untouched$/);
  });

  test("masquerading that is gone concerns those that were masqueraded", () => {
    const found = lines(iptables, iptables.replace(/^-A KUBE-MARK-MASQ .*\n/m, ""));
    const inside = found.filter((line) => line.startsWith("tcp 10.96.1.5:80"));
    expect(inside).toHaveLength(1);
    expect(inside[0]).toMatch(/from the node, elsewhere: .*masqueraded.* → [^m]*$/);
  });

  test("a drop for one CIDR concerns that CIDR alone", () => {
    const found = lines(
      iptables,
      iptables.replace(/^COMMIT/m, "-A FORWARD -s 10.144.0.0/16 -d 10.144.0.0/16 -j DROP\nCOMMIT"),
    );
    for (const line of found) expect(line).toMatch(/from 10\.144\.0\.0\/16: .* → drop$/);
    expect(found.length).toBeGreaterThan(0);
  });
});

test("two recordings: what one has and the other has not", () => {
  const [before, after] = [goldenScenario("01-clusterip").iptables, goldenScenario("03-three-endpoints").iptables];
  const found = lines(before, after);
  expect(found.find((line) => line.startsWith("tcp 10.96.67.75:80"))).toMatch(/10\.144\.154\.71:\d+.* → untouched/);
  expect(found.find((line) => line.startsWith("tcp 10.96.1.3:80"))).toMatch(/untouched → .*33 %/);
  expect(found.some((line) => line.includes("10.96.0.1:443"))).toBe(false);
});

describe("destinations whose rules are the same are not traced", () => {
  const recordings = goldenScenarios().map(({ iptables }) => iptables);
  const endpoints = [...new Set(recordings.flatMap((text) => text.match(/(?<=to-destination )\S+/g) ?? []))];
  const foreign = [
    ["nat", "-A PREROUTING -s 10.144.0.0/16 -j ACCEPT"],
    ["nat", "-A OUTPUT -d 10.96.0.0/12 -p tcp -j RETURN"],
    ["nat", "-A POSTROUTING -j LOG"],
    ["nat", `-A PREROUTING -d ${NODE_ADDRESS}/32 -p tcp -m tcp --dport 80 -j DNAT --to-destination ${endpoints[0]}`],
    ["nat", `-A PREROUTING -p tcp -m tcp --dport 443 -j DNAT --to-destination ${endpoints[1]?.split(":")[0]}`],
    ["nat", "-A PREROUTING -p tcp -m tcp --dport 80 -j REDIRECT --to-ports 8080"],
    ["nat", "-A PREROUTING ! -d 10.96.0.1/32 -p tcp -m tcp --dport 1:1024 -m limit --limit 5/min -j DROP"],
    // Met by what has been translated only.
    ...endpoints.slice(0, 4).map((to) => ["filter", `-A FORWARD -d ${to.split(":")[0]}/32 -j DROP`]),
    ["filter", "-A FORWARD -p tcp -m tcp --dport 8080 -j DROP"],
  ] as const;

  const edit = fc.record({
    line: fc.nat(),
    how: fc.constantFrom("gone", "twice", "swapped", "share", "endpoint", "port", "host", "foreign"),
    other: fc.nat(),
  });

  /** What somebody might do to one rule. */
  function edited(text: string, { line, how, other }: typeof edit extends fc.Arbitrary<infer Edit> ? Edit : never) {
    const lines = text.split("\n");
    const rules = lines.flatMap((one, at) => (one.startsWith("-A ") ? [at] : []));
    const at = rules[line % rules.length] ?? 0;
    const [rule = "", next = ""] = [lines[at], lines[at + 1]];
    const made = {
      gone: [next],
      twice: [rule, rule, next],
      swapped: next.startsWith("-A ") ? [next, rule] : [rule, next],
      share: [rule.replace(/probability \S+/, "probability 0.12500000000"), next],
      endpoint: [rule.replace(/to-destination \S+/, `to-destination ${endpoints[other % endpoints.length]}`), next],
      port: [rule.replace(/dport \d+/, `dport ${[80, 443, 30_105][other % 3]}`), next],
      host: [rule.replace(/-d [\d.]+\/32/, `-d ${["10.96.0.1", "10.96.1.5", NODE_ADDRESS][other % 3]}/32`), next],
      foreign: [rule, next],
    }[how];
    lines.splice(at, 2, ...made);
    const changed = lines.join("\n");
    if (how !== "foreign") return changed;
    const [table, added] = foreign[other % foreign.length] ?? foreign[0];
    // Before all other rules of its table.
    return changed.replace(new RegExp(`\\*${table}\\n(?::.*\\n)*`), (head) => `${head}${added}\n`);
  }

  test("which leaves the answer as it is", () => {
    const listing = fc.constantFrom(...recordings).filter((text) => !text.includes("ip6tables"));
    fc.assert(
      fc.property(listing, fc.array(edit, { maxLength: 3 }), (text, edits) => {
        const before = { ruleSet: parseSave(text), environment: { localAddresses: [NODE_ADDRESS] } };
        const after = { ...before, ruleSet: parseSave(edits.reduce(edited, text)) };
        // Other surroundings, of which nobody can say that they are the same: everything is traced.
        const elsewhere = { ...after, environment: { ...after.environment, broadcastAddresses: [] } };
        expect(compareTraffic(before, after, "IPv4", NODE_ADDRESS)).toEqual(
          compareTraffic(before, elsewhere, "IPv4", NODE_ADDRESS),
        );
      }),
      { numRuns: runs(105) },
    );
  });
});

describe("destinations of which tables of nftables say the same are not traced", async () => {
  const all = goldenScenarios().flatMap(({ objects }) => objects);
  const objects = [
    ...new Map(all.map((one) => [`${one.kind} ${one.metadata.namespace}/${one.metadata.name}`, one])).values(),
  ];
  const { node } = goldenScenario("01-clusterip");
  const plan = await planned({ objects, node }, { mode: "nftables" });
  const text = toEnd(dryTables(plan.planner.plan("IPv4"), settingsOf(node, "nftables")))
    .map(tableText)
    .join("");
  const lines = text.split("\n");
  /** Elements that others stand before and behind. */
  const elements = lines.flatMap((line, at) => (/^\t\t\t {5}.*,$/.test(line) ? [at] : []));
  const rules = lines.flatMap((line, at) => (line.startsWith("\t\tip ") ? [at] : []));
  const addresses = [...new Set(text.match(/\b10\.(?:96|144)\.\d+\.\d+\b(?!\/)/g) ?? [])];
  const chains = [...text.matchAll(/goto (\S+?),?\s/g)].map(([, name = ""]) => name);

  const edit = fc.record({ at: fc.nat(), how: fc.constantFrom("gone", "to", "key", "chain", "rule"), other: fc.nat() });
  type Edit = typeof edit extends fc.Arbitrary<infer One> ? One : never;

  function edited(before: readonly string[], { at, how, other }: Edit): readonly string[] {
    const places = how === "rule" ? rules : elements;
    const place = places[at % places.length] ?? 0;
    const line = before[place] ?? "";
    const address = addresses[other % addresses.length] ?? "";
    const made = {
      gone: "",
      to: line.replace(/: 10\.\d+\.\d+\.\d+/, `: ${address}`),
      key: line.replace(/10\.\d+\.\d+\.\d+/, address),
      chain: line.replace(/goto [^\s,]+/, `goto ${chains[other % chains.length]}`),
      rule: `\t\tip daddr ${address} drop`,
    }[how];
    return before.with(place, made);
  }

  const state = (nftables: readonly NftTable[]) => ({
    ruleSet: parseSave(""),
    nftables,
    environment: { localAddresses: [NODE_ADDRESS] },
  });

  test("which leaves the answer as it is", () => {
    expect(elements.length).toBeGreaterThan(50);
    fc.assert(
      fc.property(fc.array(edit, { minLength: 1, maxLength: 2 }), (edits) => {
        const before = state(readTables(text));
        const after = state(readTables(edits.reduce(edited, lines).join("\n")));
        const elsewhere = { ...after, environment: { ...after.environment, broadcastAddresses: [] } };
        expect(compareTraffic(before, after, "IPv4", NODE_ADDRESS)).toEqual(
          compareTraffic(before, elsewhere, "IPv4", NODE_ADDRESS),
        );
      }),
      { numRuns: runs(10) },
    );
  });

  test("but where what they are translated to is met by what differs", () => {
    const [, endpoint = ""] = /: (10\.144\.\d+\.\d+) \. /.exec(text) ?? [];
    const after = text.replace(
      /set cluster-ips \{[^}]*?elements = \{ /,
      (begin) => `${begin}${endpoint},\n\t\t\t     `,
    );
    const { changes } = compareTraffic(state(readTables(text)), state(readTables(after)), "IPv4", NODE_ADDRESS);
    expect(changes.flatMap((one) => ("ways" in one.after ? [...one.after.ways.keys()] : []))).toContain("reject");
  });
});
