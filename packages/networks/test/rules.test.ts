import { runs } from "@fairlead/tooling/runs";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  type LastKnown,
  type NetworksDecision,
  parseLastKnown,
  type ResourceState,
  type ServiceRule,
  serializeLastKnown,
  serviceRule,
} from "../src/index.ts";
import { type SetupOptions, setup, TestServices, theirs } from "./support.ts";

const UDN = "k8s.ovn.org/primary-user-defined-network";
const RULES: readonly ServiceRule[] = [{ namespaceLabel: UDN, ownership: "foreign" }];
const labeled = (labels: unknown) => ({ metadata: { labels } });
const services = () => new TestServices({ web: ["10.144.0.5"] });
const LABELED = labeled({ [UDN]: "", other: "x" });

function owner({ filter }: NetworksDecision): string {
  const all = services();
  const web = all.service("default/web");
  if (web === undefined) throw new Error("it was just made");
  return filter.decide(web, "IPv4", all.endpoints("default/web", "IPv4"), undefined).ownership;
}

function started(known?: LastKnown) {
  const made = setup({ settings: { rules: RULES }, ...(known && { known }) });
  made.start();
  return made;
}

describe("rules that ask for labels of namespaces", () => {
  test("the first decision waits for their list", () => {
    const { networks, next } = started();
    expect(networks.ready).toBe(false);
    networks.objects.setNamespace("default", LABELED);
    networks.objects.setNamespacesState("listed");
    expect(networks.ready).toBe(true);
    expect(owner(next(services()))).toBe("foreign");
    expect(networks.report().sources.at(-2)).toEqual({ source: "namespaces", side: "rules", state: "listed" });
  });

  test("a label that comes or goes touches the services of its namespace; another label touches nothing", () => {
    const { networks, next } = started();
    networks.objects.setNamespacesState("listed");
    const before = next(services());
    expect(owner(before)).toBe("ours");
    networks.objects.setNamespace("default", labeled({ other: "x" }));
    expect(networks.due).toBeUndefined();
    networks.objects.setNamespace("default", LABELED);
    const after = next(services());
    expect([owner(after), [...after.touched]]).toEqual(["foreign", ["default/web"]]);
    expect(owner(before)).toBe("ours");
    networks.objects.setNamespace("default", undefined);
    expect(owner(next(services()))).toBe("ours");
  });

  test.each([null, 7, { metadata: null }, labeled([]), labeled({ [UDN]: 7 }), labeled({ __proto__: { [UDN]: "" } })])(
    "garbage is a namespace without the label: %j",
    (raw) => {
      const { networks, next } = started();
      networks.objects.setNamespace("default", raw);
      networks.objects.setNamespacesState("listed");
      expect(owner(next(services()))).toBe("ours");
    },
  );

  test("what was known before counts until a list says otherwise; forbidden says nothing", () => {
    const before = started();
    before.networks.objects.setNamespace("default", LABELED);
    before.networks.objects.setNamespacesState("listed");
    before.next(services());
    const { known } = parseLastKnown(serializeLastKnown(before.networks.lastKnown()));
    const { networks, next } = started(known);
    expect(networks.ready).toBe(true);
    networks.objects.setNamespacesState("forbidden");
    expect(owner(next(services()))).toBe("foreign");
    networks.objects.setNamespacesState("listed");
    expect(owner(next(services()))).toBe("ours");
  });

  test("without such a rule namespaces are neither waited for nor kept", () => {
    const { networks } = setup({ settings: { rules: [{ annotation: "a", ownership: "ours" }] } });
    networks.objects.setNamespace("default", LABELED);
    networks.objects.setNamespacesState("listed");
    expect(networks.lastKnown()).not.toHaveProperty("namespaces");
    expect(networks.report().sources.map(({ source }) => source)).not.toContain("namespaces");
  });
});

const ALL_RULES: readonly ServiceRule[] = [
  { annotation: "ovn.kubernetes.io/vpc", notIn: ["ovn-cluster"], ownership: "foreign" },
  { namespaceLabel: "k8s.ovn.org/primary-user-defined-network", ownership: "foreign" },
  { namespaceLabel: "team", in: ["net"], ownership: "ours" },
];
const VPC = "annotation ovn.kubernetes.io/vpc not in ovn-cluster: foreign";

test("a rule says what of a Service is left to its network", () => {
  const service = new TestServices({ web: [] }).service("default/web");
  if (service === undefined) throw new Error("it was just made");
  const rule = { namespaceLabel: "tenant", ownership: "foreign", excludedFrontends: "excluded-clients" } as const;
  expect(serviceRule([rule], () => ({ tenant: "" }))(service)).toMatchObject({ excludedFrontends: "excluded-clients" });
});

test.each([
  ["another VPC", { "ovn.kubernetes.io/vpc": "blue" }, {}, VPC],
  ["the default VPC", { "ovn.kubernetes.io/vpc": "ovn-cluster" }, {}, undefined],
  [
    "a label without a value",
    {},
    { "k8s.ovn.org/primary-user-defined-network": "" },
    "namespace label k8s.ovn.org/primary-user-defined-network: foreign",
  ],
  ["a label of the list", {}, { team: "net" }, "namespace label team in net: ours"],
  ["a label not of the list", {}, { team: "web" }, undefined],
  ["the first rule wins", { "ovn.kubernetes.io/vpc": "blue" }, { team: "net" }, VPC],
  ["a namespace that is not known", {}, undefined, undefined],
  ["names that every object has", {}, {}, undefined],
])("%s", (_what, annotations, labels, rule) => {
  const service = new TestServices({ web: [] }).service("default/web");
  if (service === undefined) throw new Error("it was just made");
  const found = serviceRule(ALL_RULES, () => labels)({ ...service, annotations });
  expect(found?.why).toBe(rule && `rule: ${rule}`);
});

const NO_SERVICES = new TestServices();
const LONG = 3_600_000;

const MAIN = "10.16.0.0/16";
const OLD = "10.17.0.0/16";
const MOVED = "10.30.0.0/16";

/** The default VPC is called main; there is a Subnet of it, and one of ovn-cluster. */
function renamed(options: SetupOptions = {}) {
  const made = setup({ vpcs: "listed", ...options });
  const { networks, clock, next } = made;
  const state = (one: Exclude<ResourceState, "waiting">) => networks.objects.setState(theirs.id, 1, one);
  /** The decision after a while, without a service at any address. */
  const later = (milliseconds: number) => {
    next(NO_SERVICES);
    clock.advanceNow(milliseconds);
    return networks.decide(NO_SERVICES).excludeCIDRs;
  };
  made.subnet("main", MAIN, "main");
  made.subnet("old", OLD, "ovn-cluster");
  return { ...made, state, later };
}

test("the default VPC is the one that says so, also for a Subnet that names none", () => {
  const { networks, subnet, vpc, start, next } = renamed();
  subnet("bare", "10.18.0.0/16");
  vpc("main", true);
  vpc("ovn-cluster", false);
  start();
  expect(next(NO_SERVICES).excludeCIDRs).toEqual([MAIN, "10.18.0.0/16"]);
  expect(networks.report().sources[0]).toEqual({ source: "kube-ovn-subnets", side: "excluded", state: "listed" });
});

test("nothing is decided before it is known which VPC is the default one", () => {
  const { networks, vpc, start, state } = renamed({ vpcs: "waiting" });
  start();
  vpc("main", true);
  expect(networks.ready).toBe(false);
  state("listed");
  expect(networks.ready).toBe(true);
  expect(networks.decide(NO_SERVICES).excludeCIDRs).toEqual([MAIN]);
});

test("a Subnet that changes its VPC counts, or does not, by the new one", () => {
  const { subnet, start, next, later } = renamed();
  start();
  expect(next(NO_SERVICES).excludeCIDRs).toEqual([OLD]);
  subnet("main", MAIN, "ovn-cluster");
  subnet("old", OLD, "main");
  expect(next(NO_SERVICES).excludeCIDRs).toEqual([MAIN, OLD]);
  expect(later(LONG)).toEqual([MAIN]);
});

test("a VPC that becomes the default one is learned; what was, goes as any CIDR does", () => {
  const { vpc, start, next, later } = renamed();
  start();
  expect(next(NO_SERVICES).excludeCIDRs).toEqual([OLD]);
  vpc("main", true);
  expect(next(NO_SERVICES).excludeCIDRs).toEqual([MAIN, OLD]);
  expect(later(LONG)).toEqual([MAIN]);
});

test("where Vpcs may not be read, the source says so; ovn-cluster's Subnets are followed", () => {
  const { networks, subnet, noSubnet, start, next, later } = renamed({ vpcs: "forbidden" });
  start();
  expect(next(NO_SERVICES).excludeCIDRs).toEqual([OLD]);
  expect(networks.report().sources[0]).toMatchObject({ state: "forbidden", forbidden: ["vpcs.kubeovn.io"] });
  subnet("new", "10.19.0.0/16", "ovn-cluster");
  expect(next(NO_SERVICES).excludeCIDRs).toEqual([OLD, "10.19.0.0/16"]);
  noSubnet("old");
  expect(later(LONG)).toEqual(["10.19.0.0/16"]);
});

test.each(["forbidden", "absent"] as const)("after a restart with Vpcs %s what was learned by them stays", (vpcs) => {
  const before = renamed();
  before.vpc("main", true);
  before.start();
  before.next(NO_SERVICES);
  const { subnet, noSubnet, start, later, cidr } = renamed({ vpcs, known: before.networks.lastKnown() });
  // ovn-cluster, in place of an unknown one, has nothing else.
  subnet("third", "10.20.0.0/16", "third");
  start();
  expect(later(LONG)).toEqual([MAIN, OLD]);
  expect(cidr(MAIN)).not.toHaveProperty("why");
  noSubnet("main");
  expect(later(LONG)).toEqual([OLD]);
});

test("where their resource goes with all Vpcs nothing is taken away, whatever the Subnets do meanwhile", () => {
  const happening = fc.oneof(
    fc.record({ state: fc.constantFrom("absent", "forbidden", "unreachable"), wait: fc.constantFrom(0, 1_000, LONG) }),
    fc.record({ vpc: fc.constantFrom("main", "ovn-cluster", "other"), wait: fc.constantFrom(0, 1_000, 300_000) }),
    fc.record({ subnet: fc.constantFrom("main", "ovn-cluster", "other"), wait: fc.constantFrom(0, 1_000, LONG) }),
  );
  fc.assert(
    fc.property(fc.array(happening, { maxLength: 20 }), (happenings) => {
      const { networks, clock, subnet, vpc, noVpc, start, next, state } = renamed();
      vpc("main", true);
      start();
      let before = new Set(next(NO_SERVICES).excludeCIDRs);
      for (const one of happenings) {
        if ("vpc" in one) {
          // As the server reports it when the CRD is deleted: the objects, and soon after that there is no resource.
          noVpc(one.vpc);
          clock.advanceNow(one.wait);
          networks.decide(NO_SERVICES);
          state("absent");
        } else if ("state" in one) state(one.state);
        else subnet("moved", MOVED, one.subnet);
        clock.advanceNow(one.wait);
        const after = new Set(networks.decide(NO_SERVICES).excludeCIDRs);
        expect([...before].filter((cidr) => cidr !== MOVED && !after.has(cidr))).toEqual([]);
        before = after;
      }
    }),
    { numRuns: runs(500) },
  );
});
