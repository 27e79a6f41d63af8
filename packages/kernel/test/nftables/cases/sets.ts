import type { Case } from "../case.ts";

/** Sets and maps: types, flags, times and sizes. */
export const SETS: readonly Case[] = [
  {
    name: "a set's too",
    when: (to) => to.addresses("x".repeat(256)),
    refused: `ERANGE: cannot add set ${"x".repeat(256)}`,
  },
  {
    name: "a set that a rule looks into stays",
    given: (to) => to.chains("a").verdicts("v").looksUp("a", "v"),
    when: (to) => to.deleteSet("v"),
    refused: "EBUSY: cannot delete set v",
    after: ["chain a 1", "set v 0"],
  },
  {
    name: "a set goes with its elements, and frees what they led to",
    given: (to) => to.chains("a").verdicts("v").leads("v", 1, { kind: "goto", chain: "a" }),
    when: (to) => to.deleteSet("v").deleteChain("a"),
    after: [],
  },
  {
    name: "a set of other types",
    given: (to) => to.addresses("s"),
    when: (to) => to.data("s"),
    refused: "EEXIST: cannot add set s",
    after: ["set s 0"],
  },
  {
    name: "a set with other flags",
    given: (to) => to.addresses("s"),
    when: (to) => to.addresses("s", { flags: ["timeout"] }),
    refused: "EEXIST: cannot add set s",
    after: ["set s 0"],
  },
  {
    name: "a timeout without its flag",
    when: (to) => to.addresses("s", { timeout: 1000 }),
    refused: "EINVAL: cannot add set s",
  },
  {
    name: "a set may be named with another timeout",
    given: (to) => to.addresses("s", { flags: ["timeout"], timeout: 10_000 }),
    when: (to) => to.addresses("s", { flags: ["timeout"], timeout: 20_000 }),
    after: ["set s 0 timeout 20000"],
  },
  {
    name: "a set that packets change has an end",
    given: (to) => to.chains("a").addresses("s", { flags: ["dynamic", "timeout"], timeout: 1000 }),
    when: (to) => to.remembers("a", "s"),
    after: ["chain a 1", "set s 0 timeout 1000 size 65535"],
  },
  {
    name: "a set of a fixed size is not changed by packets",
    given: (to) => to.chains("a").addresses("s", { size: 10 }),
    when: (to) => to.remembers("a", "s"),
    refused: "ENOTSUP: cannot add a rule of chain a",
    after: ["chain a 0", "set s 0 size 10"],
  },
  {
    name: "a time for an element where none has one",
    given: (to) => to.chains("a").addresses("s", { flags: ["dynamic"] }),
    when: (to) => to.remembers("a", "s", 5000),
    refused: "ENOTSUP: cannot add a rule of chain a",
    after: ["chain a 0", "set s 0"],
  },
];
