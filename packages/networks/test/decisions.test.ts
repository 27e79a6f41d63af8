import { toEnd } from "@fairlead/base";
import { describe, expect, test } from "vitest";
import { parseLastKnown, serialiseLastKnown } from "../src/index.ts";
import { TestServices } from "./services.ts";
import { others, ours, setup, theirs } from "./setup.ts";

const HOUR = 3_600_000;
const services = () =>
  new TestServices({
    ours: ["10.144.0.5"],
    ovn: ["10.16.0.5"],
    ovn2: ["10.16.0.6"],
    a: ["10.144.0.6"],
    b: ["10.144.0.7"],
  });

describe("absent, forbidden and empty are told apart", () => {
  test("an absent CRD is a known and empty source: nothing waits for it", () => {
    const { networks, start, next } = setup();
    expect(networks.ready).toBe(false);
    start();
    expect(networks.ready).toBe(true);
    expect(next(services()).excludeCIDRs).toEqual([]);
    expect(networks.report().sources).toEqual([
      { source: "kube-ovn-subnets", side: "excluded", state: "empty" },
      { source: "pools.v1.example.org", side: "excluded", state: "absent" },
      { source: "calico-ippools", side: "own", state: "empty" },
    ]);
  });

  test("forbidden: what was written counts, nothing waits, and the first list counts when it comes", () => {
    const { networks, start, next, subnet } = setup({ settings: { written: { own: [], excluded: ["10.17.0.0/16"] } } });
    start();
    networks.setState(theirs.id, 0, "forbidden");
    expect(networks.ready).toBe(true);
    expect(next(services()).excludeCIDRs).toEqual(["10.17.0.0/16"]);
    expect(networks.report().sources[0]?.state).toBe("forbidden");
    subnet("ovn-default", "10.16.0.0/16");
    networks.setState(theirs.id, 0, "listed");
    expect(next(services()).excludeCIDRs).toEqual(["10.16.0.0/16", "10.17.0.0/16"]);
  });

  test("revoked: what was learned stays, and is gone only when a list without it has come", () => {
    const { networks, start, next, subnet, noSubnet, cidr } = setup();
    subnet("ovn-default", "10.16.0.0/16");
    start();
    next(services());
    networks.setState(theirs.id, 0, "forbidden");
    noSubnet("ovn-default");
    expect(next(services()).excludeCIDRs).toEqual(["10.16.0.0/16"]);
    expect(cidr("10.16.0.0/16")?.why).toBeUndefined();
    networks.setState(theirs.id, 0, "listed");
    expect(next(services()).excludeCIDRs).toEqual(["10.16.0.0/16"]);
    expect(cidr("10.16.0.0/16")?.why).toContain("no object defines it anymore");
  });

  test("unreachable keeps all, and is not a first list", () => {
    const { networks, start, next, subnet } = setup();
    subnet("ovn-default", "10.16.0.0/16");
    networks.setState(theirs.id, 0, "unreachable");
    expect(networks.ready).toBe(false);
    start();
    next(services());
    networks.setState(theirs.id, 0, "unreachable");
    expect(next(services()).excludeCIDRs).toEqual(["10.16.0.0/16"]);
    expect(networks.report().sources[0]?.state).toBe("unreachable");
  });
});

describe("the start", () => {
  test("without anything known it waits 10 s for the first lists, not longer", () => {
    const { networks, clock, subnet, next } = setup();
    subnet("ovn-default", "10.16.0.0/16");
    expect(networks.due).toBe(10_000);
    clock.advanceNow(9_999);
    expect(networks.ready).toBe(false);
    clock.advanceNow(1);
    expect(networks.ready).toBe(true);
    expect(networks.due).toBe(0);
    expect(next(services()).excludeCIDRs).toEqual([]);
    networks.setState(theirs.id, 0, "listed");
    expect(networks.due).toBe(1_000);
    expect(next(services()).excludeCIDRs).toEqual(["10.16.0.0/16"]);
  });

  test("with what is known from before it does not wait, and goes on where it was", () => {
    const before = setup();
    before.subnet("ovn-default", "10.16.0.0/16");
    before.pool("default", "10.145.0.0/16");
    before.start();
    before.next(services());
    const { known, reason } = parseLastKnown(serialiseLastKnown(before.networks.lastKnown()));
    expect(reason).toBeUndefined();

    const { networks, clock, next, cidr, start } = setup({ known });
    expect(networks.ready).toBe(true);
    expect(next(services())).toMatchObject({
      excludeCIDRs: ["10.16.0.0/16"],
      clusterCIDRs: ["10.144.0.0/16", "10.145.0.0/16"],
    });
    expect(cidr("10.16.0.0/16")).toMatchObject({ objects: ["Subnet/ovn-default"], since: "2030-01-01T00:00:00.000Z" });
    clock.advanceNow(HOUR);
    start();
    // The list is complete and empty: as if the CRD had been deleted while no agent ran.
    expect(next(services()).excludeCIDRs).toEqual(["10.16.0.0/16"]);
  });

  test("what was known under other settings of a source says nothing", () => {
    const before = setup();
    before.subnet("ovn-default", "10.16.0.0/16");
    before.start();
    before.next(services());
    const known = before.networks.lastKnown();
    const { networks } = setup({ known, settings: { sources: { own: [theirs], excluded: [ours] } } });
    expect(networks.ready).toBe(false);
  });

  test.each([
    ["", "have an unknown format (this Fairlead writes version 1)"],
    ['{"version":2}', "have an unknown format (this Fairlead writes version 1)"],
    ['{"version":1,"sources":{"a":[{"cidr":"10.0.0.0/99","since":1,"consented":true}]}}', 'are damaged at "a"'],
    ['{"version":1,"sources":{"a":{}}}', 'are damaged at "a"'],
    ['{"version":1,"sources":{"a":[{"cidr":"10.0.0.0/9","since":1e300,"consented":true}]}}', 'are damaged at "a"'],
    ['{"version":1,"sources":{"a":[{"cidr":"10.0.0.0/9","since":-1e400,"consented":true}]}}', 'are damaged at "a"'],
    [
      '{"version":1,"sources":{"a":[{"cidr":"10.0.0.0/9","since":8640000000000001,"consented":true}]}}',
      'are damaged at "a"',
    ],
    ["[".repeat(1_000), "have an unknown format (this Fairlead writes version 1)"],
  ])("of a text such as %s nothing is taken", (text, why) => {
    expect(parseLastKnown(text)).toEqual({
      known: { sources: new Map(), turned: [] },
      reason: `the last known networks ${why}`,
    });
  });
});

test("names such as __proto__ are names in what is known, and change no object", () => {
  const text = `{"version":1,"__proto__":{"turned":["a/b"]},"sources":{"__proto__":[]},"turned":["a/b",7,"c"],
    "namespaces":{"__proto__":{"__proto__":"x","constructor":{}},"good":[]}}`;
  const { known, reason } = parseLastKnown(text);
  expect(reason).toBeUndefined();
  expect([...known.sources.keys()]).toEqual(["__proto__"]);
  expect(known.turned).toEqual(["a/b"]);
  expect([...(known.namespaces?.keys() ?? [])]).toEqual(["__proto__", "good"]);
  expect(parseLastKnown(serialiseLastKnown(known)).known).toEqual(known);
  expect(Object.hasOwn(Object.prototype, "turned")).toBe(false);
});

describe("what goes", () => {
  test("a CRD deleted under the watch: no service changes hands while an endpoint is there", () => {
    const { networks, clock, start, next, subnet, noSubnet, cidr } = setup();
    const all = services();
    subnet("ovn-default", "10.16.0.0/16");
    start();
    next(all);
    noSubnet("ovn-default");
    networks.setState(theirs.id, 0, "absent");
    for (let hour = 0; hour < 3; hour++) {
      clock.advanceNow(HOUR);
      expect(networks.decide(all)).toMatchObject({ excludeCIDRs: ["10.16.0.0/16"], touched: new Set() });
    }
    all.set("ovn", []);
    all.set("ovn2", ["10.144.0.9"]);
    networks.decide(all);
    clock.advanceNow(599_999);
    expect(networks.decide(all).excludeCIDRs).toEqual(["10.16.0.0/16"]);
    expect(networks.due).toBe(1);
    clock.advanceNow(1);
    expect(networks.decide(all).excludeCIDRs).toEqual([]);
    expect(cidr("10.16.0.0/16")).toBeUndefined();
  });

  test("an endpoint that comes back begins the delay again; so does the object", () => {
    const { networks, clock, start, next, subnet, noSubnet, cidr } = setup();
    const all = services();
    subnet("ovn-default", "10.99.0.0/16");
    start();
    next(all);
    noSubnet("ovn-default");
    next(all);
    clock.advanceNow(500_000);
    all.set("ovn", ["10.99.0.1"]);
    networks.decide(all);
    all.set("ovn", []);
    networks.decide(all);
    clock.advanceNow(500_000);
    expect(networks.decide(all).excludeCIDRs).toEqual(["10.99.0.0/16"]);
    subnet("again", "10.99.0.0/16");
    next(all);
    clock.advanceNow(HOUR);
    expect(networks.decide(all).excludeCIDRs).toEqual(["10.99.0.0/16"]);
    expect(cidr("10.99.0.0/16")).toMatchObject({ objects: ["Subnet/again"], stage: "effective" });
  });
});

describe("our own network takes over the addresses of one that is gone", () => {
  const learned = () => {
    const made = setup({ settings: { written: { own: [], excluded: [] } } });
    made.subnet("ovn-default", "10.16.0.0/16");
    made.start();
    made.next(services());
    return made;
  };

  test.each(["10.16.0.0/16", "10.16.0.0/15"])("%s said after it went: ours at once", (cidr) => {
    const { next, noSubnet, pool } = learned();
    noSubnet("ovn-default");
    expect(next(services()).excludeCIDRs).toEqual(["10.16.0.0/16"]);
    pool("taken-over", cidr);
    expect(next(services())).toMatchObject({
      excludeCIDRs: [],
      ownCIDRs: [cidr],
      touched: new Set(["default/ovn", "default/ovn2"]),
    });
  });

  test("both in one change: ours", () => {
    const { next, noSubnet, pool } = learned();
    noSubnet("ovn-default");
    pool("taken-over", "10.16.0.0/15");
    expect(next(services()).excludeCIDRs).toEqual([]);
  });

  test("a wide pool that stood beside it all the time says nothing when the CRD is deleted", () => {
    const { networks, next, noSubnet, pool } = learned();
    pool("wide", "10.0.0.0/8");
    next(services());
    noSubnet("ovn-default");
    networks.setState(theirs.id, 0, "absent");
    expect(next(services())).toMatchObject({ excludeCIDRs: ["10.16.0.0/16"], touched: new Set() });
  });

  test("a pool that must not count takes over nothing", () => {
    const { networks, next, noSubnet, pool } = learned();
    networks.setServiceCIDRs(["10.96.0.0/12"]);
    noSubnet("ovn-default");
    pool("too-wide", "10.0.0.0/8");
    expect(next(services()).excludeCIDRs).toEqual(["10.16.0.0/16"]);
  });

  test("a pool that is a part of it: what lies there keeps it no longer", () => {
    const { clock, networks, next, noSubnet, pool } = learned();
    pool("ours", "10.144.0.0/16");
    noSubnet("ovn-default");
    pool("part", "10.16.0.0/24");
    expect(next(services()).excludeCIDRs).toEqual(["10.16.0.0/16"]);
    // Seen to be empty with the next look, it counts for removalDelay.
    networks.decide(services());
    clock.advanceNow(600_000);
    expect(networks.decide(services()).excludeCIDRs).toEqual([]);
  });
});

describe("in steps", () => {
  test("what comes between two of them counts with the next decision, whole", () => {
    const { networks, clock, start, next, subnet } = setup();
    start();
    next(services());
    subnet("a", "10.16.0.5/32");
    clock.advanceNow(1_000);
    const steps = networks.deciding(services());
    steps.next();
    steps.next();
    steps.next();
    subnet("b", "10.16.0.6/32");
    expect(toEnd(steps).excludeCIDRs).toEqual(["10.16.0.5/32"]);
    expect(networks.due).toBe(1_000);
    expect(next(services())).toMatchObject({
      excludeCIDRs: ["10.16.0.5/32", "10.16.0.6/32"],
      touched: new Set(["default/ovn2"]),
    });
  });

  test("a thousand CIDRs over as many services are a thousand steps and more", () => {
    const many = Object.fromEntries(Array.from({ length: 1_000 }, (_, n) => [`s${n}`, [`10.${n >> 8}.${n & 255}.1`]]));
    const { networks, clock, start, next, subnet } = setup({ settings: { written: { own: [], excluded: [] } } });
    const all = new TestServices(many);
    start();
    next(all);
    for (let n = 0; n < 1_000; n++) subnet(`s${n}`, `10.${n >> 8}.${n & 255}.0/24`);
    clock.advanceNow(1_000);
    let steps = 0;
    for (const _step of networks.deciding(all)) steps++;
    // What each reaches, and each service for each try of the guard.
    expect(steps).toBeGreaterThan(5_000);
    expect(networks.report().heldBack).toBe(1_000);
  });

  test("a consent between two of them lets what was turned before be forgotten", () => {
    const { networks, clock, start, next, subnet } = setup({ settings: { written: { own: [], excluded: [] } } });
    start();
    next(services());
    subnet("a", "10.16.0.0/16");
    subnet("all", "10.144.0.0/15");
    next(services());
    subnet("b", "10.144.0.5/32");
    clock.advanceNow(1_000);
    const steps = networks.deciding(services());
    for (let step = 0; step < 8; step++) steps.next();
    expect(networks.accept()).toBe(1);
    toEnd(steps);
    expect(networks.lastKnown().turned).not.toContain("default/ovn");
    expect(next(services()).excludeCIDRs).toContain("10.144.0.0/15");
  });
});

describe("what comes", () => {
  test("changes are gathered for a second, from the first one", () => {
    const { networks, clock, start, next, subnet } = setup();
    start();
    next(services());
    expect(networks.due).toBeUndefined();
    subnet("a", "10.20.0.0/16");
    clock.advanceNow(999);
    subnet("b", "10.21.0.0/16");
    expect(networks.due).toBe(1);
    expect(networks.decide(services()).excludeCIDRs).toEqual([]);
    clock.advanceNow(1);
    expect(networks.decide(services()).excludeCIDRs).toEqual(["10.20.0.0/16", "10.21.0.0/16"]);
  });

  test("only services with an endpoint where something changed are touched", () => {
    const { start, next, subnet, pool, networks } = setup();
    start();
    next(services());
    subnet("a", "10.16.0.5/32");
    expect(next(services()).touched).toEqual(new Set(["default/ovn"]));
    pool("b", "10.16.0.6/32");
    expect(next(services()).touched).toEqual(new Set(["default/ovn2"]));
    networks.setNode("node-a", ["10.144.0.7"]);
    const decision = next(services());
    expect(decision.touched).toEqual(new Set(["default/b"]));
    expect(decision.neutralAddresses).toEqual(new Set(["10.144.0.7"]));
  });

  test("our own CIDRs follow the pools", () => {
    const { start, next, pool } = setup();
    pool("a", "10.145.0.0/16");
    start();
    expect(next(services()).clusterCIDRs).toEqual(["10.144.0.0/16", "10.145.0.0/16"]);
  });
});

describe("refused, the others kept", () => {
  test.each([
    ["0.0.0.0/0", "covers every IPv4 address"],
    ["10.16.0.1/16", "has host bits set; write 10.16.0.0/16"],
    ["ten", "must be a CIDR"],
    ["::ffff:10.16.0.0/112", "is IPv4 written as IPv6; write 10.16.0.0/16"],
    ["10.144.0.0/15", "would cover all of this proxy's own 10.144.0.0/16"],
    ["10.96.1.0/24", "overlaps the service CIDR 10.96.0.0/12"],
    ["10.0.0.0/8", "overlaps the service CIDR 10.96.0.0/12"],
  ])("%s", (bad, why) => {
    const { networks, start, next, subnet, cidr } = setup();
    networks.setServiceCIDRs(["10.96.0.0/12"]);
    subnet("bad", bad);
    subnet("good", "10.16.0.0/16");
    start();
    expect(next(services()).excludeCIDRs).toEqual(["10.16.0.0/16"]);
    expect(cidr(bad)).toMatchObject({ stage: "refused", objects: ["Subnet/bad"] });
    expect(cidr(bad)?.why).toContain(why);
  });

  test("two that together leave nothing: the wider is refused, whichever came first", () => {
    for (const order of [
      ["10.144.0.0/17", "10.144.128.0/17"],
      ["10.144.128.0/17", "10.144.0.0/17"],
    ]) {
      const { start, next, subnet } = setup();
      for (const one of order) subnet(one, one);
      start();
      expect(next(services()).excludeCIDRs).toEqual(["10.144.0.0/17"]);
    }
  });

  test("one that is no longer refused is decided as a new one", () => {
    const { networks, start, next, subnet, cidr } = setup();
    networks.setServiceCIDRs(["10.144.0.0/12"]);
    subnet("a", "10.144.0.0/17");
    start();
    next(services());
    networks.setServiceCIDRs([]);
    expect(next(services()).excludeCIDRs).toEqual(["10.144.0.0/17"]);
    expect(cidr("10.144.0.0/17")?.stage).toBe("effective");
  });

  test("garbage is reported once and costs only itself", () => {
    const { networks, subnet, start, next } = setup();
    const garbage = { spec: { cidrBlock: { a: 1 } } };
    subnet("good", "10.16.0.0/16");
    const first = networks.upsert(theirs.id, 0, "Subnet/bad", garbage);
    expect(first).toEqual(['spec.cidrBlock is "{\\"a\\":1}"; must be a CIDR']);
    expect(networks.upsert(theirs.id, 0, "Subnet/bad", garbage)).toEqual([]);
    for (const raw of [null, 7, "x", [], { spec: [] }]) expect(networks.upsert(others.id, 0, "x/y", raw)).toEqual([]);
    start();
    expect(next(services()).excludeCIDRs).toEqual(["10.16.0.0/16"]);
  });
});

describe("the guard", () => {
  const started = (settings = {}) => {
    const made = setup({ settings });
    made.start();
    made.next(services());
    return made;
  };

  test("more than half of the services: held, until somebody accepts", () => {
    const { networks, next, subnet, cidr } = started({ written: { own: [], excluded: [] } });
    subnet("all", "10.0.0.0/8");
    expect(next(services()).excludeCIDRs).toEqual([]);
    expect([networks.report().heldBack, networks.takeNews().heldBack]).toEqual([5, 5]);
    expect(cidr("10.0.0.0/8")).toMatchObject({
      stage: "held",
      why: "together with earlier changes, 5 of 5 services would become foreign; more than 50 % needs consent",
    });
    expect(networks.accept()).toBe(1);
    expect(next(services()).excludeCIDRs).toEqual(["10.0.0.0/8"]);
    expect(networks.report().heldBack).toBe(0);
    expect(networks.accept()).toBe(0);
  });

  test("what is held is looked at again and again, and changes nothing of what decides meanwhile", () => {
    const { next, subnet, cidr } = started({ written: { own: [], excluded: [] } });
    subnet("all", "10.0.0.0/8");
    const first = next(services());
    expect(cidr("10.0.0.0/8")?.stage).toBe("held");
    expect(next(services()).filter).toBe(first.filter);
  });

  test("what is narrower goes on beside what is held", () => {
    const { next, subnet, cidr } = started({ written: { own: [], excluded: [] } });
    subnet("all", "10.144.0.0/15");
    subnet("some", "10.16.0.0/16");
    expect(next(services()).excludeCIDRs).toEqual(["10.16.0.0/16"]);
    expect(cidr("10.144.0.0/15")?.stage).toBe("held");
  });

  test("small steps get no further than a large one", () => {
    const { next, subnet } = started({ written: { own: [], excluded: [] } });
    for (const address of ["10.144.0.5", "10.16.0.5", "10.16.0.6"]) {
      subnet(address, `${address}/32`);
      next(services());
    }
    expect(next(services()).excludeCIDRs).toEqual(["10.144.0.5/32", "10.16.0.5/32"]);
  });

  test("a restart is no consent", () => {
    const first = started({ written: { own: [], excluded: [] } });
    first.subnet("a", "10.16.0.0/16");
    first.next(services());
    const known = first.networks.lastKnown();
    const second = setup({ known, settings: { written: { own: [], excluded: [] } } });
    second.subnet("a", "10.16.0.0/16");
    second.subnet("b", "10.144.0.5/32");
    second.start();
    expect(second.next(services()).excludeCIDRs).toEqual(["10.16.0.0/16"]);
  });

  test("a CRD that comes after the start is guarded: its network is known to be empty", () => {
    const { networks, next, subnet, start } = setup({ settings: { written: { own: [], excluded: [] } } });
    networks.setState(theirs.id, 0, "absent");
    start();
    networks.setState(theirs.id, 0, "absent");
    next(services());
    subnet("all", "10.0.0.0/8");
    networks.setState(theirs.id, 0, "listed");
    expect(next(services()).excludeCIDRs).toEqual([]);
    expect(networks.report().heldBack).toBe(5);
  });

  test("a first list that comes late, once the role allows it, is what the operator asked for", () => {
    const { networks, clock, next, subnet, start } = setup({ settings: { written: { own: [], excluded: [] } } });
    start();
    networks.setState(theirs.id, 0, "forbidden");
    clock.advanceNow(HOUR);
    next(services());
    subnet("all", "10.0.0.0/8");
    networks.setState(theirs.id, 0, "listed");
    expect(next(services()).excludeCIDRs).toEqual(["10.0.0.0/8"]);
  });

  test("a list that is there at the first start is what the operator asked for", () => {
    const { subnet, start, next } = setup({ settings: { written: { own: [], excluded: [] } } });
    subnet("all", "10.0.0.0/8");
    start();
    expect(next(services()).excludeCIDRs).toEqual(["10.0.0.0/8"]);
  });
});

describe("own and excluded CIDRs overlap", () => {
  test("the longest prefix decides, and the conflict is told", () => {
    const { start, next, subnet, pool } = setup();
    subnet("wide", "10.16.0.0/16");
    pool("narrow", "10.16.1.0/24");
    start();
    const decision = next(services());
    expect(decision).toMatchObject({ excludeCIDRs: ["10.16.0.0/16"], ownCIDRs: ["10.16.1.0/24", "10.144.0.0/16"] });
    expect(decision.conflicts).toEqual([{ cidr: "10.16.1.0/24", side: "own", within: "10.16.0.0/16" }]);
  });

  test.each([
    ["learned on both sides: ours", { own: [], excluded: [] }, []],
    ["written as theirs: theirs", { own: [], excluded: ["10.16.0.0/16"] }, ["10.16.0.0/16"]],
    ["written as ours: ours", { own: ["10.16.0.0/16", "10.144.0.0/16"], excluded: [] }, []],
    [
      "written on both sides, as without sources: theirs",
      { own: ["10.16.0.0/16", "10.144.0.0/16"], excluded: ["10.16.0.0/16"] },
      ["10.16.0.0/16"],
    ],
  ])("the same CIDR, %s", (_what, written, excludeCIDRs) => {
    const { start, next, subnet, pool } = setup({ settings: { written } });
    subnet("same", "10.16.0.0/16");
    pool("same", "10.16.0.0/16");
    pool("other", "10.150.0.0/16");
    start();
    const decision = next(services());
    expect(decision.excludeCIDRs).toEqual(excludeCIDRs);
    expect(decision.conflicts).not.toEqual([]);
  });
});
