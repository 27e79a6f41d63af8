import type { Row } from "./draft.ts";

/** Sets and maps: types, flags, times and sizes. */
export const SETS: readonly Row[] = [
  ["a set's too", (to) => to.addresses("x".repeat(256)), `ERANGE: cannot add set ${"x".repeat(256)}`],
  [
    "a set that a rule looks into stays",
    (to) => to.deleteSet("v"),
    "EBUSY: cannot delete set v",
    (to) => to.chains("a").verdicts("v").looksUp("a", "v"),
  ],
  [
    "a set goes with its elements, and frees what they led to",
    (to) => to.deleteSet("v").deleteChain("a"),
    "",
    (to) => to.chains("a").verdicts("v").leads("v", 1, { kind: "goto", chain: "a" }),
  ],
  ["a set of other types", (to) => to.data("s"), "EEXIST: cannot add set s", (to) => to.addresses("s")],
  [
    "a set with other flags",
    (to) => to.addresses("s", { flags: ["timeout"] }),
    "EEXIST: cannot add set s",
    (to) => to.addresses("s"),
  ],
  ["a timeout without its flag", (to) => to.addresses("s", { timeout: 1000 }), "EINVAL: cannot add set s"],
  [
    "a set may be named with another timeout",
    (to) => to.addresses("s", { flags: ["timeout"], timeout: 20_000 }),
    "set s 0 timeout 20000",
    (to) => to.addresses("s", { flags: ["timeout"], timeout: 10_000 }),
  ],
  [
    "a set that packets change has an end",
    (to) => to.remembers("a", "s"),
    "chain a 1, set s 0 timeout 1000 size 65535",
    (to) => to.chains("a").addresses("s", { flags: ["dynamic", "timeout"], timeout: 1000 }),
  ],
  [
    "a set of a fixed size is not changed by packets",
    (to) => to.remembers("a", "s"),
    "ENOTSUP: cannot add a rule of chain a",
    (to) => to.chains("a").addresses("s", { size: 10 }),
  ],
  [
    "a time for an element where none has one",
    (to) => to.remembers("a", "s", 5000),
    "ENOTSUP: cannot add a rule of chain a",
    (to) => to.chains("a").addresses("s", { flags: ["dynamic"] }),
  ],
];

/** Elements: keys, values, verdicts and times. */
export const ELEMENTS: readonly Row[] = [
  [
    "a key with another value",
    (to) => to.maps("d", 1, 9),
    "EEXIST: cannot add elements of set d",
    (to) => to.data("d").maps("d", 1, 8),
  ],
  [
    "a key with another verdict",
    (to) => to.leads("v", 1, { kind: "goto", chain: "b" }),
    "EEXIST: cannot add elements of set v",
    (to) => to.chains("a", "b").verdicts("v").leads("v", 1, { kind: "goto", chain: "a" }),
  ],
  [
    "a value is changed by taking it away first",
    (to) => to.deleteElements("d", [to.address(1)]).maps("d", 1, 9),
    "set d 1",
    (to) => to.data("d").maps("d", 1, 8),
  ],
  [
    "an element that is not there",
    (to) => to.deleteElements("s", [to.address(1), to.address(2)]),
    "ENOENT: cannot delete elements of set s",
    (to) => to.addresses("s").has("s", 1),
  ],
  [
    "an element cannot go twice",
    (to) => to.deleteElements("s", [to.address(1), to.address(1)]),
    "ENOENT: cannot delete elements of set s",
    (to) => to.addresses("s").has("s", 1),
  ],
  ["elements of a set that is not there", (to) => to.has("s", 1), "ENOENT: cannot add elements of set s"],
  [
    "a flushed set takes other values",
    (to) => to.flushSet("d").maps("d", 1, 9),
    "set d 1",
    (to) => to.data("d").maps("d", 1, 8),
  ],
  [
    "a key that is too short",
    (to) => to.addElements("s", [{ key: "00" }]),
    "EINVAL: cannot add elements of set s",
    (to) => to.addresses("s"),
  ],
  [
    "a set's element has no value",
    (to) => to.maps("s", 1, 2),
    "EINVAL: cannot add elements of set s",
    (to) => to.addresses("s"),
  ],
  ["a map's element has one", (to) => to.has("d", 1), "EINVAL: cannot add elements of set d", (to) => to.data("d")],
  [
    "of the right length",
    (to) => to.addElements("d", [{ key: to.address(1), value: "0000" }]),
    "EINVAL: cannot add elements of set d",
    (to) => to.data("d"),
  ],
  [
    "an element that leads nowhere",
    (to) => to.leads("v", 1, { kind: "goto", chain: "a" }),
    "ENOENT: cannot add elements of set v",
    (to) => to.verdicts("v"),
  ],
  [
    "an element that leads to a base chain",
    (to) => to.leads("v", 1, { kind: "goto", chain: "nat" }),
    "ENOTSUP: cannot add elements of set v",
    (to) => to.base("nat").verdicts("v"),
  ],
  [
    "a set that is full",
    (to) =>
      to.addElements(
        "s",
        [1, 2, 3].map((n) => ({ key: to.address(n) })),
      ),
    "ENFILE: cannot add elements of set s",
    (to) => to.addresses("s", { size: 2 }),
  ],
  [
    "a timeout in a set that has none",
    (to) => to.addElements("s", [{ key: to.address(1), timeout: 10_000 }]),
    "EINVAL: cannot add elements of set s",
    (to) => to.addresses("s"),
  ],
  [
    "an element may stay for less than its time",
    (to) => to.addElements("s", [{ key: to.address(1), expires: 50_000 }]),
    "set s 1 timeout 100000",
    (to) => to.addresses("s", { flags: ["timeout"], timeout: 100_000 }),
  ],
  [
    "not for more",
    (to) => to.addElements("s", [{ key: to.address(1), expires: 150_000 }]),
    "ERANGE: cannot add elements of set s",
    (to) => to.addresses("s", { flags: ["timeout"], timeout: 100_000 }),
  ],
  [
    "not where none has a time",
    (to) => to.addElements("s", [{ key: to.address(1), expires: 50_000 }]),
    "ENOTSUP: cannot add elements of set s",
    (to) => to.addresses("s", { flags: ["timeout"] }),
  ],
];
