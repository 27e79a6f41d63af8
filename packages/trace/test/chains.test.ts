import type { RuleSet } from "@fairlead/netfilter";
import { describe, expect, test } from "vitest";
import { TraceError, trace } from "../src/index.ts";
import { HOST, only, packet, ruleSet } from "./rule-set.ts";

function forward(rules: string): RuleSet {
  return ruleSet({ filter: `:FORWARD ACCEPT [0:0]\n${rules}` });
}

function end(rules: RuleSet) {
  const { verdict, mark } = only(rules, packet());
  return [verdict, mark];
}

test("thousands of chains deep", () => {
  const depth = 5000;
  const jumps = Array.from({ length: depth }, (_, at) => `-A C${at} -j C${at + 1}\n`).join("");
  expect(end(forward(`-A FORWARD -j C0\n${jumps}-A C${depth} -j MARK --set-xmark 0x10/0x10\n`))).toEqual([
    "accept",
    16,
  ]);
});

describe("what the kernel would refuse", () => {
  test.each([
    ["-j", "A → B → A"],
    ["-g", "A → B → A"],
  ])("a loop by %s", (jump, loop) => {
    const rules = forward(`-A FORWARD ${jump} A\n-A A ${jump} B\n-A B ${jump} A\n`);
    expect(() => trace(rules, packet(), HOST)).toThrow(`the chains are a loop: ${loop}: rule 1 of filter B`);
  });

  test("a jump to a chain that isn't there", () => {
    expect(() => trace(forward("-A FORWARD -j NOWHERE\n"), packet(), HOST)).toThrow("there is no chain NOWHERE");
  });

  test.each([
    ["REJECT", { nat: "-A PREROUTING -j REJECT\n" }],
    ["DNAT", { nat: "-A POSTROUTING -p tcp -j DNAT --to-destination 10.0.0.9\n" }],
    ["DNAT", { filter: "-A FORWARD -p tcp -j DNAT --to-destination 10.0.0.9\n" }],
    ["MASQUERADE", { nat: "-A PREROUTING -j MASQUERADE\n" }],
    ["REDIRECT", { nat: "-A POSTROUTING -j REDIRECT\n" }],
  ])("%s where it has no business", (target, tables) => {
    expect(() => trace(ruleSet(tables), packet(), HOST)).toThrow(new RegExp(`^${target} is only valid in table`));
  });
});

describe("what the tracer doesn't know", () => {
  test.each([
    ["-m limit --limit 5/min -j DROP", 'the match "limit"'],
    ["-p tcp -m tcp --tcp-option 2 -j DROP", 'the match "tcp", at least with these options'],
    ["-j CONNMARK --restore-mark", "the target CONNMARK"],
    ["-m addrtype --dst-type BLACKHOLE -j DROP", "whether an address is BLACKHOLE"],
    ["-m set --match-set absent dst -j DROP", 'the environment has no set "absent"'],
  ])("%s is an error that names the rule", (rule, problem) => {
    const rules = forward(`-A FORWARD -j A\n-A A -d 203.0.113.1/32 -j DROP\n-A A ${rule}\n`);
    const error = caught(() => trace(rules, packet(), HOST));
    expect(error).toBeInstanceOf(TraceError);
    expect(error).toMatchObject({ table: "filter", chain: "A", index: 1, message: expect.stringContaining(problem) });
    expect(error).toMatchObject({ message: expect.stringContaining(`rule 2 of filter A: -A A ${rule}`) });
  });

  test.each([
    "-d 203.0.113.1/32 -m limit --limit 5/min -j DROP",
    "-p udp -m limit --limit 5/min -j LOG",
    "-m mark --mark 0x1 -m limit --limit 5/min -j DROP",
  ])("%s is none where the packet doesn't get that far", (rule) => {
    expect(end(forward(`-A FORWARD ${rule}\n`))).toEqual(["accept", 0]);
  });

  test("an outgoing interface that the environment does not say", () => {
    expect(() => trace(forward("-A FORWARD -o cali+ -j DROP\n"), packet(), {})).toThrow(
      "the outgoing interface is not known",
    );
  });

  test.each(["10.0.0.1-10.0.0.9", "10.0.0.1:80-90"])("DNAT to the range %s", (to) => {
    const rules = ruleSet({ nat: `-A PREROUTING -p tcp -j DNAT --to-destination ${to}\n` });
    expect(() => trace(rules, packet(), HOST)).toThrow(`cannot decide which of ${to} DNAT takes`);
  });
});

function caught(run: () => unknown): unknown {
  try {
    run();
  } catch (error) {
    return error;
  }
  throw new Error("nothing was thrown");
}
