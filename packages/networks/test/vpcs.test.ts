import { runs } from "@fairlead/tooling/runs";
import fc from "fast-check";
import { expect, test } from "vitest";
import type { ResourceState } from "../src/index.ts";
import { TestServices } from "./services.ts";
import { type SetupOptions, setup, theirs } from "./setup.ts";

const NOBODY = new TestServices();
const LONG = 3_600_000;

const MAIN = "10.16.0.0/16";
const OLD = "10.17.0.0/16";
/** A Subnet that changes its VPC. */
const MOVED = "10.30.0.0/16";

/** The default VPC is called main; there is a Subnet of it, and one of ovn-cluster. */
function renamed(options: SetupOptions = {}) {
  const made = setup({ vpcs: "listed", ...options });
  const { networks, clock, next } = made;
  const state = (one: Exclude<ResourceState, "waiting">) => networks.objects.setState(theirs.id, 1, one);
  /** The decision after a while, with nobody at any address. */
  const later = (milliseconds: number) => {
    next(NOBODY);
    clock.advanceNow(milliseconds);
    return networks.decide(NOBODY).excludeCIDRs;
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
  expect(next(NOBODY).excludeCIDRs).toEqual([MAIN, "10.18.0.0/16"]);
  expect(networks.report().sources[0]).toEqual({ source: "kube-ovn-subnets", side: "excluded", state: "listed" });
});

test("nothing is decided before it is known which VPC is the default one", () => {
  const { networks, vpc, start, state } = renamed({ vpcs: "waiting" });
  start();
  vpc("main", true);
  expect(networks.ready).toBe(false);
  state("listed");
  expect(networks.ready).toBe(true);
  expect(networks.decide(NOBODY).excludeCIDRs).toEqual([MAIN]);
});

test("a Subnet that changes its VPC counts, or does not, by the new one", () => {
  const { subnet, start, next, later } = renamed();
  start();
  expect(next(NOBODY).excludeCIDRs).toEqual([OLD]);
  subnet("main", MAIN, "ovn-cluster");
  subnet("old", OLD, "main");
  expect(next(NOBODY).excludeCIDRs).toEqual([MAIN, OLD]);
  expect(later(LONG)).toEqual([MAIN]);
});

test("a VPC that becomes the default one is learned; what was, goes as any CIDR does", () => {
  const { vpc, start, next, later } = renamed();
  start();
  expect(next(NOBODY).excludeCIDRs).toEqual([OLD]);
  vpc("main", true);
  expect(next(NOBODY).excludeCIDRs).toEqual([MAIN, OLD]);
  expect(later(LONG)).toEqual([MAIN]);
});

test("where Vpcs may not be read, the source says so; ovn-cluster's Subnets are followed", () => {
  const { networks, subnet, noSubnet, start, next, later } = renamed({ vpcs: "forbidden" });
  start();
  expect(next(NOBODY).excludeCIDRs).toEqual([OLD]);
  expect(networks.report().sources[0]).toMatchObject({ state: "forbidden", forbidden: ["vpcs.kubeovn.io"] });
  subnet("new", "10.19.0.0/16", "ovn-cluster");
  expect(next(NOBODY).excludeCIDRs).toEqual([OLD, "10.19.0.0/16"]);
  noSubnet("old");
  expect(later(LONG)).toEqual(["10.19.0.0/16"]);
});

test.each(["forbidden", "absent"] as const)("after a restart with Vpcs %s what was learned by them stays", (vpcs) => {
  const before = renamed();
  before.vpc("main", true);
  before.start();
  before.next(NOBODY);
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
      let before = new Set(next(NOBODY).excludeCIDRs);
      for (const one of happenings) {
        if ("vpc" in one) {
          // As the server tells it when the CRD is deleted: the objects, and soon after that there is no resource.
          noVpc(one.vpc);
          clock.advanceNow(one.wait);
          networks.decide(NOBODY);
          state("absent");
        } else if ("state" in one) state(one.state);
        else subnet("moved", MOVED, one.subnet);
        clock.advanceNow(one.wait);
        const after = new Set(networks.decide(NOBODY).excludeCIDRs);
        expect([...before].filter((cidr) => cidr !== MOVED && !after.has(cidr))).toEqual([]);
        before = after;
      }
    }),
    { numRuns: runs(500) },
  );
});
