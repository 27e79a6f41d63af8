import { toEnd } from "@fairlead/base";
import { describe, expect, test } from "vitest";
import { NOTHING_KNOWN, parseLastKnown, type ServicesView, serializeLastKnown } from "../src/index.ts";
import { others, ours, setup, TestServices, theirs } from "./support.ts";

const HOUR = 3_600_000;
const services = () =>
  new TestServices({
    ours: ["10.144.0.5"],
    ovn: ["10.16.0.5"],
    ovn2: ["10.16.0.6"],
    a: ["10.144.0.6"],
    b: ["10.144.0.7"],
  });

describe("absent, forbidden and empty are three states", () => {
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
      { source: "fairlead-networks", side: "consent", state: "empty" },
    ]);
  });

  test("forbidden: what was written counts, nothing waits, and the first list counts when it comes", () => {
    const { networks, start, next, subnet } = setup({ settings: { written: { own: [], excluded: ["10.17.0.0/16"] } } });
    start();
    networks.objects.setState(theirs.id, 0, "forbidden");
    expect(networks.ready).toBe(true);
    expect(next(services()).excludeCIDRs).toEqual(["10.17.0.0/16"]);
    expect(networks.report().sources[0]?.state).toBe("forbidden");
    subnet("ovn-default", "10.16.0.0/16");
    networks.objects.setState(theirs.id, 0, "listed");
    expect(next(services()).excludeCIDRs).toEqual(["10.16.0.0/16", "10.17.0.0/16"]);
  });

  test("revoked: what was learned stays, and is gone only when a list without it has come", () => {
    const { networks, start, next, subnet, noSubnet, cidr } = setup();
    subnet("ovn-default", "10.16.0.0/16");
    start();
    next(services());
    networks.objects.setState(theirs.id, 0, "forbidden");
    noSubnet("ovn-default");
    expect(next(services()).excludeCIDRs).toEqual(["10.16.0.0/16"]);
    expect(cidr("10.16.0.0/16")?.why).toBeUndefined();
    networks.objects.setState(theirs.id, 0, "listed");
    expect(next(services()).excludeCIDRs).toEqual(["10.16.0.0/16"]);
    expect(cidr("10.16.0.0/16")?.why).toContain("no object defines it anymore");
  });

  test("unreachable keeps all, and is not a first list", () => {
    const { networks, start, next, subnet } = setup();
    subnet("ovn-default", "10.16.0.0/16");
    networks.objects.setState(theirs.id, 0, "unreachable");
    expect(networks.ready).toBe(false);
    start();
    next(services());
    networks.objects.setState(theirs.id, 0, "unreachable");
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
    networks.objects.setState(theirs.id, 0, "listed");
    expect(networks.due).toBe(1_000);
    expect(next(services()).excludeCIDRs).toEqual(["10.16.0.0/16"]);
  });

  test("with what is known from before it does not wait, and goes on where it was", () => {
    const before = setup();
    before.subnet("ovn-default", "10.16.0.0/16");
    before.pool("default", "10.145.0.0/16");
    before.start();
    before.next(services());
    const { known, reason } = parseLastKnown(serializeLastKnown(before.networks.lastKnown()));
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
    ["", "have an unknown format (this Fairlead writes version 2)"],
    ['{"version":3}', "have an unknown format (this Fairlead writes version 2)"],
    ['{"version":2,"sources":{"a":[{"cidr":"10.0.0.0/99","since":1}]}}', 'are damaged at "a"'],
    ['{"version":2,"sources":{"a":{}}}', 'are damaged at "a"'],
    ['{"version":2,"sources":{"a":[{"cidr":"10.0.0.0/9","since":1e300}]}}', 'are damaged at "a"'],
    ['{"version":2,"sources":{"a":[{"cidr":"10.0.0.0/9","since":-1e400}]}}', 'are damaged at "a"'],
    ['{"version":2,"sources":{"a":[{"cidr":"10.0.0.0/9","since":8640000000000001}]}}', 'are damaged at "a"'],
    ["[".repeat(1_000), "have an unknown format (this Fairlead writes version 2)"],
  ])("of a text such as %s nothing is taken", (text, why) => {
    expect(parseLastKnown(text)).toEqual({
      known: NOTHING_KNOWN,
      reason: `the last known networks ${why}`,
    });
  });
});

test("names such as __proto__ are names in what is known, and change no object", () => {
  const text = `{"version":2,"__proto__":{"turned":["a/b"]},"sources":{"__proto__":[]},
    "namespaces":{"__proto__":{"__proto__":"x","constructor":{}},"good":[]}}`;
  const { known, reason } = parseLastKnown(text);
  expect(reason).toBeUndefined();
  expect([...known.sources.keys()]).toEqual(["__proto__"]);
  expect([...(known.namespaces?.keys() ?? [])]).toEqual(["__proto__", "good"]);
  expect(parseLastKnown(serializeLastKnown(known)).known).toEqual(known);
  expect(Object.hasOwn(Object.prototype, "turned")).toBe(false);
});

describe("what goes", () => {
  const learned = () => {
    const made = setup({ settings: { written: { own: [], excluded: [] } } });
    made.subnet("ovn-default", "10.16.0.0/16");
    made.start();
    made.next(services());
    return made;
  };

  test("a CRD deleted under the watch: its last list stays until another one is complete", () => {
    const { networks, clock, next, noSubnet, cidr } = learned();
    noSubnet("ovn-default");
    expect(next(services()).excludeCIDRs).toEqual(["10.16.0.0/16"]);
    networks.objects.setState(theirs.id, 0, "absent");
    for (let hour = 0; hour < 3; hour++) {
      clock.advanceNow(HOUR);
      expect(networks.decide(services())).toMatchObject({ excludeCIDRs: ["10.16.0.0/16"], touched: new Set() });
    }
    expect(cidr("10.16.0.0/16")).toMatchObject({ kept: true });
    expect(networks.due).toBeUndefined();
    networks.objects.setState(theirs.id, 0, "listed");
    next(services());
    clock.advanceNow(599_999);
    expect(networks.decide(services()).excludeCIDRs).toEqual(["10.16.0.0/16"]);
    expect(networks.due).toBe(1);
    clock.advanceNow(1);
    expect(networks.decide(services()).excludeCIDRs).toEqual([]);
    expect(cidr("10.16.0.0/16")).toBeUndefined();
  });

  test("a restart does not begin the delay again", () => {
    const { networks, clock, next, noSubnet } = learned();
    noSubnet("ovn-default");
    next(services());
    clock.advanceNow(500_000);
    const { known } = parseLastKnown(serializeLastKnown(networks.lastKnown()));
    const after = setup({ known, clock, settings: { written: { own: [], excluded: [] } } });
    after.start();
    expect(after.networks.decide(services()).excludeCIDRs).toEqual(["10.16.0.0/16"]);
    clock.advanceNow(100_000);
    expect(after.networks.decide(services()).excludeCIDRs).toEqual([]);
  });

  test.each(["10.16.0.0/16", "10.16.0.0/15"])("%s of our own: what lies there is ours at once", (own) => {
    const { next, noSubnet, pool } = learned();
    noSubnet("ovn-default");
    expect(next(services()).excludeCIDRs).toEqual(["10.16.0.0/16"]);
    pool("taken-over", own);
    expect(next(services())).toMatchObject({
      excludeCIDRs: [],
      ownCIDRs: [own],
      touched: new Set(["default/ovn", "default/ovn2"]),
    });
  });

  test("forgotten by an operator: at once, also while its CRD is gone", () => {
    const { networks, next, noSubnet, subnet } = learned();
    const forget = (fields: object) =>
      networks.objects.setConsent({ data: { forgotten: JSON.stringify([{ cidr: "10.16.0.0/12", ...fields }]) } });
    noSubnet("ovn-default");
    networks.objects.setState(theirs.id, 0, "absent");
    forget({ until: "2029-01-01T00:00:00Z" });
    expect(next(services()).excludeCIDRs).toEqual(["10.16.0.0/16"]);
    forget({ until: "2031-01-01T00:00:00Z" });
    expect(next(services()).excludeCIDRs).toEqual([]);
    // What an object defines is not forgotten.
    networks.objects.setState(theirs.id, 0, "listed");
    subnet("ovn-default", "10.16.0.0/16");
    expect(next(services()).excludeCIDRs).toEqual(["10.16.0.0/16"]);
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

  test("a decision that takes long is made less often: a tenth of the time", () => {
    const { networks, clock, start, next, subnet } = setup();
    start();
    next(services());
    const all = services();
    const within = (cidr: string) => {
      clock.advanceNow(500);
      return all.within(cidr);
    };
    const slow: ServicesView = { keys: () => all.keys(), within, inNamespace: () => [] };
    const dueAfter = (view: ServicesView) => {
      subnet("a", "10.20.0.0/16");
      clock.advanceNow(networks.due ?? 0);
      // What others do between two steps is not the decision's time.
      for (const _step of networks.deciding(view)) clock.advanceNow(100);
      subnet("b", "10.21.0.0/16");
      return networks.due;
    };
    expect(dueAfter(slow)).toBe(5_000);
    expect(dueAfter(all)).toBe(1_000);
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
    expect(steps).toBeGreaterThanOrEqual(3_000);
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
    networks.objects.setNode("node-a", ["10.144.0.7"]);
    const decision = next(services());
    expect(decision.touched).toEqual(new Set(["default/b"]));
    expect(decision.neutralAddresses).toEqual(new Map([["10.144.0.7", new Set(["node-a"])]]));
    networks.objects.setNode("node-b", ["10.144.0.7"]);
    expect(next(services()).touched).toEqual(new Set(["default/b"]));
  });

  test("a node's address is no client of another network, and one node's claims are bounded", () => {
    const filter = {
      mixedServices: "own-endpoints",
      excludedFrontends: "excluded-clients",
      ownershipAnnotation: true,
    } as const;
    const { start, next, subnet, networks } = setup({ settings: { filter } });
    subnet("underlay", "10.16.0.0/24");
    start();
    const clients = () => next(services()).filter.excludedClients?.("IPv4");
    expect(clients()).toEqual(["10.16.0.0/24"]);
    networks.objects.setNode("node-a", ["10.16.0.255"]);
    const [first, ...others] = clients() ?? [];
    expect([first, others.length, others.at(-1)]).toEqual(["10.16.0.0/25", 7, "10.16.0.254/32"]);
    networks.objects.setNode(
      "node-a",
      Array.from({ length: 100 }, (_, at) => `10.16.0.${2 * at}`),
    );
    expect(clients()).toHaveLength(16 + 3);
  });
});

describe("refused, the others kept", () => {
  test.each([
    ["0.0.0.0/0", "covers every IPv4 address"],
    ["10.16.0.1/16", "has host bits set; write 10.16.0.0/16"],
    ["ten", "must be a CIDR"],
    ["::ffff:10.16.0.0/112", "is IPv4 written as IPv6; write 10.16.0.0/16"],
    ["10.96.1.0/24", "overlaps the service CIDR 10.96.0.0/12"],
    ["10.0.0.0/8", "overlaps the service CIDR 10.96.0.0/12"],
  ])("%s", (bad, why) => {
    const { networks, start, next, subnet, cidr } = setup();
    networks.objects.setServiceCIDRs(["10.96.0.0/12"]);
    subnet("bad", bad);
    subnet("good", "10.16.0.0/16");
    start();
    expect(next(services()).excludeCIDRs).toEqual(["10.16.0.0/16"]);
    expect(cidr(bad)).toMatchObject({ stage: "refused", objects: ["Subnet/bad"] });
    expect(cidr(bad)?.why).toContain(why);
  });

  test("one that is no longer refused takes effect", () => {
    const { networks, start, next, subnet, cidr } = setup();
    networks.objects.setServiceCIDRs(["10.20.0.0/16"]);
    subnet("a", "10.20.0.0/17");
    start();
    next(services());
    networks.objects.setServiceCIDRs([]);
    expect(next(services()).excludeCIDRs).toEqual(["10.20.0.0/17"]);
    expect(cidr("10.20.0.0/17")?.stage).toBe("effective");
  });

  test("garbage is reported once and costs only itself", () => {
    const { networks, subnet, start, next } = setup();
    const garbage = { spec: { cidrBlock: { a: 1 } } };
    subnet("good", "10.16.0.0/16");
    const first = networks.objects.upsert(theirs.id, 0, "Subnet/bad", garbage);
    expect(first).toEqual(['spec.cidrBlock is "{\\"a\\":1}"; must be a CIDR']);
    expect(networks.objects.upsert(theirs.id, 0, "Subnet/bad", garbage)).toEqual([]);
    for (const raw of [null, 7, "x", [], { spec: [] }])
      expect(networks.objects.upsert(others.id, 0, "x/y", raw)).toEqual([]);
    start();
    expect(next(services()).excludeCIDRs).toEqual(["10.16.0.0/16"]);
  });
});

describe("own and excluded CIDRs overlap", () => {
  test("the longest prefix decides, and the conflict is reported", () => {
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
    const { networks, start, next, subnet, pool } = setup({ settings: { written } });
    subnet("same", "10.16.0.0/16");
    pool("same", "10.16.0.0/16");
    pool("other", "10.150.0.0/16");
    start();
    const decision = next(services());
    expect(decision.excludeCIDRs).toEqual(excludeCIDRs);
    const stages = networks
      .report()
      .cidrs.filter((one) => one.cidr === "10.16.0.0/16")
      .map(({ stage }) => stage);
    expect(stages).toEqual(written.excluded.length > 0 ? ["effective", "refused"] : ["held", "effective"]);
  });
});
