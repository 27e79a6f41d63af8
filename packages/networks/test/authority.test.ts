import { describe, expect, test } from "vitest";
import type { NetworksSettings } from "../src/index.ts";
import { customSource, parseLastKnown, serializeLastKnown } from "../src/index.ts";
import { ours, setup, TestServices, theirs } from "./support.ts";

const HOUR = 3_600_000;
const services = () => new TestServices({ dns: ["10.144.1.2"], ours: ["10.144.0.5"], ovn: ["10.16.0.5"] });

const within = (lists: Readonly<Record<string, readonly string[]>>): Partial<NetworksSettings> => ({
  written: { own: [], excluded: [] },
  within: new Map(Object.entries(lists)),
});
const RECIPE = within({ [theirs.id]: ["10.16.0.0/12"], [ours.id]: ["10.144.0.0/16"] });

describe("a source that has within", () => {
  const started = (settings: Partial<NetworksSettings> = RECIPE) => {
    const made = setup({ settings });
    made.pool("default", "10.144.0.0/16");
    made.start();
    made.next(services());
    return made;
  };

  test.each(["10.144.1.0/29", "10.0.0.0/8", "10.8.0.0/16"])(
    "and refused with %s, which is not wholly inside",
    (bad) => {
      const { next, subnet, cidr } = started();
      subnet("typo", bad);
      expect(next(services()).excludeCIDRs).toEqual([]);
      expect(cidr(bad)).toMatchObject({
        stage: "refused",
        objects: ["Subnet/typo"],
        why: "lies in no entry of within of kube-ovn-subnets (10.16.0.0/12)",
      });
    },
  );

  test("is not believed where a narrower CIDR of the operator is ours", () => {
    const { next, subnet, cidr } = started(within({ [theirs.id]: ["10.0.0.0/9"], [ours.id]: ["10.0.0.0/16"] }));
    subnet("inside", "10.0.1.0/24");
    subnet("outside", "10.16.0.0/16");
    expect(next(services()).excludeCIDRs).toEqual(["10.16.0.0/16"]);
    expect(cidr("10.0.1.0/24")?.why).toContain("lies in 10.0.0.0/16 (within of calico-ippools), which is ours");
  });

  test("is believed inside a wide CIDR of ours, which the longer prefix leaves to it", () => {
    const { next, subnet } = started({ ...RECIPE, written: { own: ["10.0.0.0/8"], excluded: [] } });
    subnet("ovn-default", "10.16.0.0/16");
    expect(next(services()).excludeCIDRs).toEqual(["10.16.0.0/16"]);
  });

  test("and the same CIDR as clusterCIDR takes its endpoints: that entry is there for masquerading", () => {
    const settings = { ...RECIPE, written: { own: ["10.144.0.0/16", "10.16.0.0/12"], excluded: [] } };
    const { next, subnet } = started(settings);
    subnet("ovn-default", "10.16.0.0/16");
    const decision = next(services());
    expect(decision).toMatchObject({ excludeCIDRs: ["10.16.0.0/16"], ownCIDRs: ["10.144.0.0/16"] });
    expect(decision.clusterCIDRs).toEqual(["10.144.0.0/16", "10.16.0.0/12"]);
  });
});

test("a namespaced object decides nothing for the cluster, unless the configuration names it", () => {
  const fields = ["spec.cidr"];
  const all = customSource({ resource: "pools.v1.example.org", fields });
  const one = customSource({
    resource: "others.v1.example.org",
    fields,
    only: { namespace: "tenant", name: "pool" },
  });
  const made = setup({ settings: { ...within({}), sources: { own: [], excluded: [theirs, all, one] } } });
  const raw = { metadata: { namespace: "tenant", name: "pool" }, spec: { cidr: "10.16.0.0/24" } };
  expect(made.networks.objects.upsert(all.id, 0, "pools/tenant/pool", raw)).toEqual([
    "is in a namespace, so it decides nothing for the cluster; a source with namespace and name reads that one object",
  ]);
  expect(made.networks.objects.upsert(one.id, 0, "others/tenant/pool", raw)).toEqual([]);
  for (const { id } of [all, one]) made.networks.objects.setState(id, 0, "listed");
  made.networks.objects.setState(theirs.id, 0, "listed");
  made.networks.objects.setState(theirs.id, 1, "absent");
  made.next(services());
  expect(made.networks.report().cidrs).toMatchObject([{ source: one.id, cidr: "10.16.0.0/24", stage: "effective" }]);
});

describe("a learned CIDR of our own takes nothing of another network's", () => {
  test.each([
    ["10.16.0.0/16", "lies in 10.16.0.0/12 (within of kube-ovn-subnets), which is another network's"],
    ["10.0.0.0/8", "contains 10.16.0.0/12 (within of kube-ovn-subnets), which is another network's"],
  ])("%s", (pool, why) => {
    const made = setup({ settings: within({ [theirs.id]: ["10.16.0.0/12"] }) });
    made.subnet("ovn-default", "10.16.0.0/16");
    made.pool("mistake", pool);
    made.start();
    expect(made.next(services())).toMatchObject({ excludeCIDRs: ["10.16.0.0/16"], ownCIDRs: [] });
    const found = made.networks.report().cidrs.find(({ side }) => side === "own");
    expect(found).toMatchObject({ cidr: pool, stage: "refused", objects: ["IPPool/mistake"], why });
  });

  test("nor of a written list", () => {
    const made = setup({ settings: { written: { own: [], excluded: ["10.16.0.0/16"] } } });
    made.pool("mistake", "10.16.0.0/17");
    made.start();
    expect(made.next(services())).toMatchObject({ excludeCIDRs: ["10.16.0.0/16"], ownCIDRs: [] });
  });
});

describe("without within: what lies in ours is held", () => {
  const started = (settings: Partial<NetworksSettings> = { written: { own: [], excluded: [] } }) => {
    const made = setup({ settings });
    made.pool("default", "10.144.0.0/16");
    made.start();
    made.next(services());
    return made;
  };
  const WHY = "which is ours; fairlead ownership --accept 10.144.1.0/29 lets it take effect";

  test("a part of a learned pool, with both objects' names and the line that accepts it", () => {
    const { networks, next, subnet, noSubnet, cidr } = started();
    subnet("thief", "10.144.1.0/29");
    expect(next(services()).excludeCIDRs).toEqual([]);
    expect(networks.takeUpdate().held).toBe(1);
    expect(cidr("10.144.1.0/29")).toMatchObject({
      stage: "held",
      objects: ["Subnet/thief"],
      why: `lies in 10.144.0.0/16 (IPPool/default), ${WHY}`,
    });
    noSubnet("thief");
    next(services());
    expect(cidr("10.144.1.0/29")).toBeUndefined();
    expect(networks.takeUpdate().held).toBe(0);
  });

  test("the same CIDR, and a part of a written one", () => {
    const { next, subnet, cidr } = started({ written: { own: ["10.144.0.0/16"], excluded: [] } });
    subnet("same", "10.144.0.0/16");
    subnet("thief", "10.144.1.0/29");
    expect(next(services()).excludeCIDRs).toEqual([]);
    expect(cidr("10.144.1.0/29")?.why).toBe(`lies in 10.144.0.0/16 (clusterCIDR), ${WHY}`);
  });

  test("what is wider than ours counts, and ours inside stays ours", () => {
    const { next, subnet } = started();
    subnet("wide", "10.128.0.0/9");
    const { filter, excludeCIDRs } = next(services());
    expect(excludeCIDRs).toEqual(["10.128.0.0/9"]);
    expect(filter.isForeign?.("10.144.1.2")).toBe(false);
    expect(filter.isForeign?.("10.145.1.2")).toBe(true);
  });
});

test("the API server's addresses belong to no learned network", () => {
  const made = setup({ settings: { written: { own: [], excluded: [] } } });
  made.networks.objects.setAPIServer(["10.16.0.5"]);
  made.subnet("around", "10.16.0.0/16");
  made.start();
  const { filter, neutralAddresses } = made.next(services());
  expect(neutralAddresses.get("10.16.0.5")).toBe("any");
  expect([filter.isForeign?.("10.16.0.5"), filter.isForeign?.("10.16.0.6")]).toEqual([false, true]);
});

test("an entry lets the annotation give away the API server's Service, on every node", () => {
  const made = setup();
  made.start();
  const service = services().service("default/dns");
  if (service === undefined) throw new Error("it is there");
  const kubernetes = { ...service, name: "kubernetes", annotations: { "fairlead.dev/ownership": "foreign" } };
  const owner = () =>
    made.next(services()).filter.decide(kubernetes, "IPv4", [{ address: "10.0.0.1" }], undefined).ownership;
  expect(owner()).toBe("ours");
  made.networks.objects.setConsent({ data: { unprotected: "[default/kubernetes]" } });
  expect(made.networks.due).toBe(1_000);
  expect(owner()).toBe("foreign");
});

describe("consent is an object", () => {
  const started = (settings: Partial<NetworksSettings> = { written: { own: [], excluded: [] } }) => {
    const made = setup({ settings });
    made.pool("default", "10.144.0.0/16");
    made.subnet("vpn", "10.144.1.0/24");
    made.start();
    made.next(services());
    return made;
  };

  test("accepted covers what lies inside", () => {
    const { accept, next } = started();
    accept("10.144.0.0/23");
    expect(next(services()).excludeCIDRs).toEqual(["10.144.1.0/24"]);
  });

  test("of one source only, where it names one", () => {
    const { networks, next } = started();
    const accepted = (source: string) =>
      networks.objects.setConsent({
        data: { accepted: `- {cidr: 10.144.1.0/24, source: ${source}, by: sre, why: moved}` },
      });
    accepted("spiderpool");
    expect(next(services()).excludeCIDRs).toEqual([]);
    accepted("kube-ovn-subnets");
    expect(next(services()).excludeCIDRs).toEqual(["10.144.1.0/24"]);
  });

  test("it lets nothing take what is written or within another network's", () => {
    const made = setup({ settings: within({ [theirs.id]: ["10.16.0.0/12"] }) });
    made.pool("mistake", "10.16.0.0/16");
    made.accept("10.16.0.0/16");
    made.start();
    expect(made.next(services()).ownCIDRs).toEqual([]);
  });

  test("a deleted object counts as empty after the removal delay", () => {
    const { networks, clock, accept, next } = started();
    accept("10.144.1.0/24");
    next(services());
    networks.objects.setConsent(undefined);
    expect(next(services()).excludeCIDRs).toEqual(["10.144.1.0/24"]);
    expect(networks.due).toBe(599_000);
    clock.advanceNow(599_000);
    expect(networks.decide(services()).excludeCIDRs).toEqual([]);
  });

  test("a restart does not begin that delay anew, nor end it before the object could be there again", () => {
    const { networks, clock, accept, next } = started();
    accept("10.144.1.0/24");
    next(services());
    networks.objects.setConsent(undefined);
    next(services());
    clock.advanceNow(300_000);
    const restarted = () => {
      const { known } = parseLastKnown(serializeLastKnown(networks.lastKnown()));
      const after = setup({ known, clock, settings: { written: { own: [], excluded: [] } } });
      after.pool("default", "10.144.0.0/16");
      after.subnet("vpn", "10.144.1.0/24");
      return after;
    };
    const after = restarted();
    after.start();
    expect(after.next(services()).excludeCIDRs).toEqual(["10.144.1.0/24"]);
    clock.advanceNow(299_000);
    expect(after.networks.decide(services()).excludeCIDRs).toEqual([]);
    const late = restarted();
    expect(late.next(services()).excludeCIDRs).toEqual(["10.144.1.0/24"]);
    late.accept("10.144.1.0/24");
    late.start();
    expect(late.next(services()).excludeCIDRs).toEqual(["10.144.1.0/24"]);
  });

  test.each(["forbidden", "unreachable"] as const)("%s keeps the last one read, also over a restart", (state) => {
    const { networks, clock, accept, next } = started();
    accept("10.144.1.0/24");
    next(services());
    networks.objects.setConsentState(state);
    clock.advanceNow(HOUR);
    expect(networks.decide(services()).excludeCIDRs).toEqual(["10.144.1.0/24"]);
    const { known } = parseLastKnown(serializeLastKnown(networks.lastKnown()));
    const after = setup({ known, settings: { written: { own: [], excluded: [] } } });
    after.pool("default", "10.144.0.0/16");
    after.subnet("vpn", "10.144.1.0/24");
    after.start();
    after.networks.objects.setConsentState("forbidden");
    expect(after.networks.decide(services()).excludeCIDRs).toEqual(["10.144.1.0/24"]);
  });

  test("wrong entries are reported once and skipped; a text that cannot be read leaves the last good one", () => {
    const { networks, next } = started();
    const write = (accepted: unknown) => networks.objects.setConsent({ data: { accepted, typo: "[]" } });
    const text = "[{cidr: 10.144.1.0/24}, {cidr: 10.144.1.1/24}, 7, {cidr: 10.0.0.0/8, source: [a]}]";
    expect(write(text)).toEqual([
      'data.accepted[1] is "{\\"cidr\\":\\"10.144.1.1/24\\"}": cidr has host bits set; write 10.144.1.0/24; it is skipped',
      'data.accepted[2] is "7": must be a block of fields, such as {cidr: 10.16.0.0/16}; it is skipped',
      'data.accepted[3] is "{\\"cidr\\":\\"10.0.0.0/8\\",\\"source\\":[\\"a\\"]}": source must be the name of a source; it is skipped',
      "data.typo: is unknown; the keys are accepted, forgotten and unprotected",
    ]);
    expect(write(text)).toEqual([]);
    expect(next(services()).excludeCIDRs).toEqual(["10.144.1.0/24"]);
    for (const bad of ["{", "x: y", 7, "a".repeat(70_000), "- &a [*a]"]) {
      expect(write(bad)[0]).toContain("the last one that could be read stays in effect");
      expect(next(services()).excludeCIDRs).toEqual(["10.144.1.0/24"]);
    }
    expect(write("")).not.toContain("accepted");
    expect(next(services()).excludeCIDRs).toEqual([]);
  });
});
