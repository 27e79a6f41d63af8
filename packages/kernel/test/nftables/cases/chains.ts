import type { Case } from "../case.ts";
import type { Draft } from "../draft.ts";

const HOOKED: readonly string[] = ["chain nat 0"];

/** Chains: their names, hooks and ends, and how deep they may lead. */
export const CHAINS: readonly Case[] = [
  {
    name: "a chain cannot become a base chain",
    given: (to) => to.chains("a"),
    when: (to) => to.base("a"),
    refused: "ENOTSUP: cannot add chain a",
    after: ["chain a 0"],
  },
  {
    name: "a base chain keeps its hook",
    given: (to) => to.base("nat"),
    when: (to) => to.base("nat", "output"),
    refused: "ENOTSUP: cannot add chain nat",
    after: HOOKED,
  },
  {
    name: "a base chain may be named without its hook",
    given: (to) => to.base("nat"),
    when: (to) => to.chains("nat"),
    after: HOOKED,
  },
  {
    name: "a name of 255 bytes is not too long",
    when: (to) => to.chains("x".repeat(255)),
    after: [`chain ${"x".repeat(255)} 0`],
  },
  {
    name: "one of 256 bytes is",
    when: (to) => to.chains("x".repeat(256)),
    refused: `ERANGE: cannot add chain ${"x".repeat(256)}`,
  },
  {
    name: "a chain that a rule jumps to stays",
    given: (to) => to.chains("a", "b").jumps("a", "b"),
    when: (to) => to.deleteChain("b"),
    refused: "EBUSY: cannot delete chain b",
    after: ["chain a 1", "chain b 0"],
  },
  {
    name: "a chain that an element leads to stays",
    given: (to) => to.chains("a").verdicts("v").leads("v", 1, { kind: "goto", chain: "a" }),
    when: (to) => to.deleteChain("a"),
    refused: "EBUSY: cannot delete chain a",
    after: ["chain a 0", "set v 1"],
  },
  {
    name: "a chain goes with its rules, and after what leads to it",
    given: (to) => to.chains("a", "b").jumps("a", "b").verdicts("v").leads("v", 1, { kind: "goto", chain: "a" }),
    when: (to) =>
      to
        .deleteElements("v", [to.service(1)])
        .deleteChain("a")
        .deleteChain("b"),
    after: ["set v 0"],
  },
  {
    name: "a chain that jumps to itself stays until it is flushed",
    given: (to) => to.chains("a").jumps("a", "a"),
    when: (to) => to.deleteChain("a"),
    refused: "EBUSY: cannot delete chain a",
    after: ["chain a 1"],
  },
  { name: "a chain that is not there", when: (to) => to.deleteChain("a"), refused: "ENOENT: cannot delete chain a" },
  { name: "flushing one that is not there", when: (to) => to.flushChain("a"), refused: "ENOENT: cannot flush chain a" },
  {
    name: "a circle that packets reach",
    given: (to) => to.base("nat").chains("a", "b").jumps("nat", "a").jumps("a", "b"),
    when: (to) => to.addresses("s").jumps("b", "a").addresses("t"),
    refused: "EMLINK: cannot add a rule of chain b",
    after: ["chain nat 1", "chain a 1", "chain b 0"],
  },
  {
    name: "a circle that an element closes",
    given: (to) => to.base("nat").chains("a").verdicts("v").jumps("nat", "a").looksUp("a", "v"),
    when: (to) => to.leads("v", 1, { kind: "drop" }).leads("v", 2, { kind: "goto", chain: "a" }),
    refused: "EMLINK: cannot add elements of set v",
    after: ["chain nat 1", "chain a 1", "set v 0"],
  },
  {
    name: "a circle that packets do not reach",
    when: (to) => to.chains("a", "b").jumps("a", "b").jumps("b", "a"),
    after: ["chain a 1", "chain b 1"],
  },
  {
    name: "fifteen chains below a base chain",
    when: (to) => {
      to.base("nat");
      nested(to, 15);
    },
    after: ["chain nat 1", ...Array.from({ length: 15 }, (_, at) => `chain c${at} ${at === 14 ? 0 : 1}`)],
  },
  {
    name: "sixteen are too many",
    when: (to) => {
      to.base("nat");
      nested(to, 16);
    },
    refused: "EMLINK: cannot add a rule of chain nat",
  },
];

/** A chain below the other, with the way into them last. */
function nested(to: Draft, depth: number): void {
  const names = Array.from({ length: depth }, (_, at) => `c${at}`);
  to.chains(...names);
  for (const [at, name] of names.entries()) if (at > 0) to.jumps(`c${at - 1}`, name);
  to.jumps("nat", "c0");
}
