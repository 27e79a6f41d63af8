import { containsCIDR } from "@fairlead/base";
import type { Ownership } from "@fairlead/core";
import { checkCIDR } from "@fairlead/endpoint-filter";
import { runs } from "@fairlead/tooling/runs";
import fc from "fast-check";
import { expect, test } from "vitest";
import type { NetworksDecision } from "../src/index.ts";
import { NODES, ours, setup, TestServices, theirs } from "./support.ts";

/** Few CIDRs, which nest, touch and repeat, and addresses at their edges. */
const cidr = fc.constantFrom(
  "10.16.0.0/16",
  "10.16.0.0/17",
  "10.16.128.0/17",
  "10.16.1.0/24",
  "10.0.0.0/8",
  "10.144.0.0/16",
  "10.144.1.0/24",
  "10.144.0.0/15",
  "fd00::/64",
  "fd00::/65",
  "0.0.0.0/0",
  "10.16.0.1/16",
  "rubbish",
);
const address = fc.constantFrom(
  "10.16.0.1",
  "10.16.1.1",
  "10.16.200.1",
  "10.144.0.1",
  "10.144.1.1",
  "10.17.0.1",
  "fd00::1",
  "fd01::1",
);
const side = fc.constantFrom("theirs" as const, "ours" as const);
const services = fc
  .array(fc.array(address, { maxLength: 3 }), { minLength: 1, maxLength: 12 })
  .map((lists) => new TestServices(Object.fromEntries(lists.map((list, at) => [`s${at}`, list]))));

interface Event {
  readonly side: "theirs" | "ours" | "vpcs" | "consent" | "nodes";
  readonly object: string;
  /** Absent, of a Subnet or pool: the object goes. */
  readonly cidr?: string;
  /** Of a Subnet: the VPC that it names. */
  readonly vpc?: string | undefined;
  /** Of a Vpc; absent: it goes. */
  readonly isDefault?: boolean;
  /** Of the consent object; absent: it goes. */
  readonly accepted?: readonly string[] | undefined;
  readonly addresses?: readonly string[];
  /** Milliseconds until the next event. */
  readonly wait: number;
}

const object = fc.constantFrom("a", "b", "c", "d");
const wait = fc.constantFrom(0, 0, 500, 1_000, 70_000, 700_000);
const event: fc.Arbitrary<Event> = fc.oneof(
  { weight: 3, arbitrary: fc.record({ side, object, cidr, wait }) },
  { weight: 1, arbitrary: fc.record({ side, object, wait }) },
);
/** Two VPCs, one of which has the name of the default one. */
const vpc = fc.constantFrom("ovn-cluster", "blue");
const vpcEvent: fc.Arbitrary<Event> = fc.oneof(
  { weight: 4, arbitrary: event },
  {
    weight: 3,
    arbitrary: fc.record({ side: fc.constant("theirs"), object, cidr, vpc: fc.option(vpc, { nil: undefined }), wait }),
  },
  { weight: 2, arbitrary: fc.record({ side: fc.constant("vpcs"), object: vpc, isDefault: fc.boolean(), wait }) },
  { weight: 1, arbitrary: fc.record({ side: fc.constant("vpcs"), object: vpc, wait }) },
);

/** All that decides: what operators accept, and where nodes say that they are. */
const anyEvent: fc.Arbitrary<Event> = fc.oneof(
  { weight: 6, arbitrary: vpcEvent },
  {
    weight: 1,
    arbitrary: fc.record({
      side: fc.constant("consent"),
      object: fc.constant("fairlead-networks"),
      accepted: fc.option(fc.array(cidr, { maxLength: 2 }), { nil: undefined }),
      wait,
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      side: fc.constant("nodes"),
      object: fc.constantFrom(...NODES),
      addresses: fc.array(address, { maxLength: 2 }),
      wait,
    }),
  },
);

type Setup = ReturnType<typeof setup>;

function apply({ networks, accept, subnet, noSubnet, pool, noPool, vpc, noVpc }: Setup, event: Event): void {
  const { side, object, cidr, isDefault, accepted, addresses = [] } = event;
  if (side === "nodes") networks.objects.setNode(object, addresses);
  else if (side === "consent") accepted === undefined ? networks.objects.setConsent(undefined) : accept(...accepted);
  else if (side === "vpcs") isDefault === undefined ? noVpc(object) : vpc(object, isDefault);
  else if (side === "theirs") cidr === undefined ? noSubnet(object) : subnet(object, cidr, event.vpc);
  else cidr === undefined ? noPool(object) : pool(object, cidr);
}

/** @param remembered what the memory holds, which decides nothing of services with endpoints */
function ownersUnder({ filter }: NetworksDecision, all: TestServices, remembered?: Ownership) {
  return all.keys().flatMap((key) =>
    (["IPv4", "IPv6"] as const).map((family) => {
      const service = all.service(key);
      const endpoints = all.endpoints(key, family);
      return service && endpoints.length > 0 ? filter.decide(service, family, endpoints, remembered).ownership : "none";
    }),
  );
}

/** What is gone is let go: the two delays are over. */
function settled({ networks, clock, next }: Setup, services: TestServices): NetworksDecision {
  next(services);
  clock.advanceNow(600_000);
  return networks.decide(services);
}

const OPEN = { written: { own: [], excluded: [] } };
/** As the recipes have it: each source is believed in a part of its own. */
const FILTERED = {
  ...OPEN,
  within: new Map([
    [theirs.id, ["10.16.0.0/15", "fd00::/64"]],
    [ours.id, ["10.144.0.0/16"]],
  ]),
};
const settings = fc.constantFrom(OPEN, FILTERED, {});

test("two nodes with the same objects and different pasts decide the same once the delays are over", () => {
  fc.assert(
    fc.property(
      fc.array(anyEvent, { maxLength: 20 }),
      services,
      fc.infiniteStream(fc.nat()),
      settings,
      fc.constantFrom<Ownership>("ours", "foreign", "mixed"),
      (events, all, random, settings, remembered) => {
        const history = setup({ settings, vpcs: "listed" });
        history.start();
        history.next(all);
        for (const one of shuffledAcrossObjects(events, random)) {
          apply(history, one);
          history.clock.advanceNow(one.wait);
          history.networks.decide(all);
        }
        const fresh = setup({ settings, vpcs: "listed" });
        for (const one of events) apply(fresh, one);
        fresh.start();
        const a = settled(history, all);
        const b = settled(fresh, all);
        expect(ownersUnder(a, all, remembered)).toEqual(ownersUnder(b, all));
        expect(a.filter.excludedClients?.("IPv4")).toEqual(b.filter.excludedClients?.("IPv4"));
        expect({ exclude: a.excludeCIDRs, own: a.ownCIDRs }).toEqual({ exclude: b.excludeCIDRs, own: b.ownCIDRs });
      },
    ),
    { numRuns: runs(175) },
  );
});

test("a node's claims decide nothing about endpoints that run elsewhere", () => {
  fc.assert(
    fc.property(
      fc.array(vpcEvent, { maxLength: 10 }),
      services,
      fc.array(address, { maxLength: 8 }),
      settings,
      (events, all, claimed, settings) => {
        const decided = (withIt: boolean) => {
          const made = setup({ settings, vpcs: "listed" });
          made.start();
          for (const one of events) apply(made, one);
          if (withIt) made.networks.objects.setNode("elsewhere", claimed);
          return ownersUnder(made.next(all), all);
        };
        expect(decided(true)).toEqual(decided(false));
      },
    ),
    { numRuns: runs(105) },
  );
});

test("an object outside its authority changes no decision", () => {
  const outside = fc.record({ side, cidr }).filter(({ side, cidr }) => {
    const filter = FILTERED.within.get(side === "theirs" ? theirs.id : ours.id) ?? [];
    return !checked(cidr) || !filter.some((one) => containsCIDR(one, cidr));
  });
  fc.assert(
    fc.property(fc.array(event, { maxLength: 15 }), services, outside, fc.nat(15), (events, all, one, at) => {
      const decided = (withIt: boolean) => {
        const made = setup({ settings: FILTERED, vpcs: "listed" });
        made.start();
        return events.map((event, index) => {
          if (withIt && index === at) apply(made, { ...one, object: "outside", wait: 0 });
          apply(made, event);
          made.clock.advanceNow(event.wait);
          return ownersUnder(made.networks.decide(all), all);
        });
      };
      expect(decided(true)).toEqual(decided(false));
    }),
    { numRuns: runs(175) },
  );
});

test("a network's object takes no address of our own network, without any filter", () => {
  fc.assert(
    fc.property(fc.array(event, { maxLength: 15 }), services, (events, all) => {
      const made = setup({ settings: OPEN, vpcs: "listed" });
      made.pool("stays", "10.144.0.0/16");
      made.start();
      made.next(all);
      for (const one of events) {
        apply(made, one);
        made.clock.advanceNow(one.wait);
        expect(made.networks.decide(all).filter.isForeign?.("10.144.1.1")).toBe(false);
      }
    }),
    { numRuns: runs(175) },
  );
});

test("deleting an object restores every decision that it brought about within the removal delay", () => {
  fc.assert(
    fc.property(
      fc.array(anyEvent, { maxLength: 15 }),
      services,
      side,
      cidr,
      settings,
      (events, all, side, cidr, settings) => {
        const made = setup({ settings, vpcs: "listed" });
        made.start();
        for (const one of events) apply(made, one);
        const before = ownersUnder(settled(made, all), all);
        apply(made, { side, object: "new", cidr, wait: 0 });
        made.next(all);
        apply(made, { side, object: "new", wait: 0 });
        expect(ownersUnder(settled(made, all), all)).toEqual(before);
      },
    ),
    { numRuns: runs(175) },
  );
});

function checked(text: string): boolean {
  return "cidr" in checkCIDR(text);
}

/** Of one object the events keep their order, as a watch gives them. */
function shuffledAcrossObjects(events: readonly Event[], random: fc.Stream<number>): readonly Event[] {
  const queues = new Map<string, Event[]>();
  for (const one of events) {
    const key = `${one.side} ${one.object}`;
    queues.set(key, [...(queues.get(key) ?? []), one]);
  }
  const result: Event[] = [];
  for (const pick of random.take(events.length)) {
    const waiting = [...queues.values()].filter((queue) => queue.length > 0);
    const next = waiting[pick % waiting.length]?.shift();
    if (next !== undefined) result.push(next);
  }
  return result;
}

test("no sequence of events leaves the API server or the cluster's DNS without an answer for our clients", () => {
  const rules = fc.constantFrom([], [{ annotation: "vpc", ownership: "foreign" as const }]);
  fc.assert(
    fc.property(
      fc.array(anyEvent, { maxLength: 15 }),
      fc.array(address),
      settings,
      rules,
      (events, addresses, more, rules) => {
        const made = setup({ settings: { ...more, rules }, vpcs: "listed" });
        made.start();
        const service = new TestServices({ web: [] }).service("default/web");
        if (service === undefined) throw new Error("it was just made");
        const annotations = { vpc: "blue", "fairlead.dev/ownership": "no owner" };
        for (const one of events) {
          apply(made, one);
          made.clock.advanceNow(one.wait);
          const { filter } = made.networks.decide(new TestServices());
          const endpoints = addresses.map((address) => ({ address }));
          for (const remembered of [undefined, "foreign" as const]) {
            const dns = { ...service, annotations, namespace: "kube-system", clusterDNS: true as const };
            const { frontends } = filter.decide(dns, "IPv4", endpoints, remembered);
            expect(["all", "all-but-excluded-clients"]).toContain(frontends);
            const kubernetes = { ...service, annotations: { "fairlead.dev/ownership": "foreign" }, name: "kubernetes" };
            expect(filter.decide(kubernetes, "IPv4", endpoints, remembered).ownership).toBe("ours");
          }
        }
      },
    ),
    { numRuns: runs(105) },
  );
});

test("while a source cannot be read, and after its CRD is gone, nothing changes hands", () => {
  const state = fc.constantFrom("absent" as const, "forbidden" as const, "unreachable" as const);
  const happening = fc.record({ state, wait });
  fc.assert(
    fc.property(
      fc.array(cidr, { maxLength: 4 }),
      services,
      fc.array(happening, { maxLength: 20 }),
      (cidrs, all, happenings) => {
        const made = setup({ settings: OPEN, vpcs: "listed" });
        for (const [at, one] of cidrs.entries()) made.subnet("abcd"[at] ?? "", one, at % 2 === 0 ? "blue" : undefined);
        made.vpc("blue", true);
        made.start();
        const owners = ownersUnder(made.next(all), all);
        // Deleting a CRD deletes its objects first.
        for (const name of "abcd") made.noSubnet(name);
        expect(ownersUnder(made.next(all), all)).toEqual(owners);
        made.networks.objects.setState(theirs.id, 0, "absent");
        for (const one of happenings) {
          made.networks.objects.setState(theirs.id, 0, one.state);
          made.networks.objects.setState(theirs.id, 1, "absent");
          made.clock.advanceNow(one.wait);
          expect(ownersUnder(made.networks.decide(all), all)).toEqual(owners);
        }
      },
    ),
    { numRuns: runs(175) },
  );
});
