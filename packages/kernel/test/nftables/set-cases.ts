import type { Case } from "./draft.ts";

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

/** Elements: keys, values, verdicts and times. */
export const ELEMENTS: readonly Case[] = [
  {
    name: "a key with another value",
    given: (to) => to.data("d").addElements("d", [{ key: to.address(1), value: to.address(8) }]),
    when: (to) => to.addElements("d", [{ key: to.address(1), value: to.address(9) }]),
    refused: "EEXIST: cannot add elements of set d",
    after: ["set d 1"],
  },
  {
    name: "a key with another verdict",
    given: (to) => to.chains("a", "b").verdicts("v").leads("v", 1, { kind: "goto", chain: "a" }),
    when: (to) => to.leads("v", 1, { kind: "goto", chain: "b" }),
    refused: "EEXIST: cannot add elements of set v",
    after: ["chain a 0", "chain b 0", "set v 1"],
  },
  {
    name: "a value is changed by taking it away first",
    given: (to) => to.data("d").addElements("d", [{ key: to.address(1), value: to.address(8) }]),
    when: (to) =>
      to.deleteElements("d", [to.address(1)]).addElements("d", [{ key: to.address(1), value: to.address(9) }]),
    after: ["set d 1"],
  },
  {
    name: "an element that is not there",
    given: (to) => to.addresses("s").addElements("s", [{ key: to.address(1) }]),
    when: (to) => to.deleteElements("s", [to.address(1), to.address(2)]),
    refused: "ENOENT: cannot delete elements of set s",
    after: ["set s 1"],
  },
  {
    name: "an element cannot go twice",
    given: (to) => to.addresses("s").addElements("s", [{ key: to.address(1) }]),
    when: (to) => to.deleteElements("s", [to.address(1), to.address(1)]),
    refused: "ENOENT: cannot delete elements of set s",
    after: ["set s 1"],
  },
  {
    name: "elements of a set that is not there",
    when: (to) => to.addElements("s", [{ key: to.address(1) }]),
    refused: "ENOENT: cannot add elements of set s",
  },
  {
    name: "a flushed set takes other values",
    given: (to) => to.data("d").addElements("d", [{ key: to.address(1), value: to.address(8) }]),
    when: (to) => to.flushSet("d").addElements("d", [{ key: to.address(1), value: to.address(9) }]),
    after: ["set d 1"],
  },
  {
    name: "a key that is too short",
    given: (to) => to.addresses("s"),
    when: (to) => to.addElements("s", [{ key: "00" }]),
    refused: "EINVAL: cannot add elements of set s",
    after: ["set s 0"],
  },
  {
    name: "a set's element has no value",
    given: (to) => to.addresses("s"),
    when: (to) => to.addElements("s", [{ key: to.address(1), value: to.address(2) }]),
    refused: "EINVAL: cannot add elements of set s",
    after: ["set s 0"],
  },
  {
    name: "a map's element has one",
    given: (to) => to.data("d"),
    when: (to) => to.addElements("d", [{ key: to.address(1) }]),
    refused: "EINVAL: cannot add elements of set d",
    after: ["set d 0"],
  },
  {
    name: "of the right length",
    given: (to) => to.data("d"),
    when: (to) => to.addElements("d", [{ key: to.address(1), value: "0000" }]),
    refused: "EINVAL: cannot add elements of set d",
    after: ["set d 0"],
  },
  {
    name: "an element that leads nowhere",
    given: (to) => to.verdicts("v"),
    when: (to) => to.leads("v", 1, { kind: "goto", chain: "a" }),
    refused: "ENOENT: cannot add elements of set v",
    after: ["set v 0"],
  },
  {
    name: "an element that leads to a base chain",
    given: (to) => to.base("nat").verdicts("v"),
    when: (to) => to.leads("v", 1, { kind: "goto", chain: "nat" }),
    refused: "ENOTSUP: cannot add elements of set v",
    after: ["chain nat 0", "set v 0"],
  },
  {
    name: "a set that is full",
    given: (to) => to.addresses("s", { size: 2 }),
    when: (to) =>
      to.addElements(
        "s",
        [1, 2, 3].map((n) => ({ key: to.address(n) })),
      ),
    refused: "ENFILE: cannot add elements of set s",
    after: ["set s 0 size 2"],
  },
  {
    name: "a timeout in a set that has none",
    given: (to) => to.addresses("s"),
    when: (to) => to.addElements("s", [{ key: to.address(1), timeout: 10_000 }]),
    refused: "EINVAL: cannot add elements of set s",
    after: ["set s 0"],
  },
  {
    name: "an element may stay for less than its time",
    given: (to) => to.addresses("s", { flags: ["timeout"], timeout: 100_000 }),
    when: (to) => to.addElements("s", [{ key: to.address(1), expires: 50_000 }]),
    after: ["set s 1 timeout 100000"],
  },
  {
    name: "not for more",
    given: (to) => to.addresses("s", { flags: ["timeout"], timeout: 100_000 }),
    when: (to) => to.addElements("s", [{ key: to.address(1), expires: 150_000 }]),
    refused: "ERANGE: cannot add elements of set s",
    after: ["set s 0 timeout 100000"],
  },
  {
    name: "not where none has a time",
    given: (to) => to.addresses("s", { flags: ["timeout"] }),
    when: (to) => to.addElements("s", [{ key: to.address(1), expires: 50_000 }]),
    refused: "ENOTSUP: cannot add elements of set s",
    after: ["set s 0"],
  },
];
