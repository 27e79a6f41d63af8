import { runs } from "@fairlead/tooling/runs";
import fc from "fast-check";
import { expect, test } from "vitest";
import type { NetworksDecision } from "../src/index.ts";
import { TestServices } from "./services.ts";
import { ours, setup, theirs } from "./setup.ts";

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
  readonly side: "theirs" | "ours" | "vpcs";
  readonly object: string;
  /** Absent, of a Subnet or pool: the object goes. */
  readonly cidr?: string;
  /** Of a Subnet: the VPC that it names. */
  readonly vpc?: string | undefined;
  /** Of a Vpc; absent: it goes. */
  readonly isDefault?: boolean;
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

type Setup = ReturnType<typeof setup>;

function apply({ subnet, noSubnet, pool, noPool, vpc, noVpc }: Setup, event: Event): void {
  const { side, object, cidr, isDefault } = event;
  if (side === "vpcs") isDefault === undefined ? noVpc(object) : vpc(object, isDefault);
  else if (side === "theirs") cidr === undefined ? noSubnet(object) : subnet(object, cidr, event.vpc);
  else cidr === undefined ? noPool(object) : pool(object, cidr);
}

function ownersUnder({ filter }: NetworksDecision, all: TestServices) {
  return all.keys().flatMap((key) =>
    (["IPv4", "IPv6"] as const).map((family) => {
      const service = all.service(key);
      const addresses = all.addresses(key, family);
      return service && addresses.length > 0 ? filter.decide(service, family, addresses, undefined).ownership : "none";
    }),
  );
}

/** Everything that is held back, or kept for a while, is let through and let go. */
function settled(made: Setup, services: TestServices): NetworksDecision {
  const { networks, clock, next } = made;
  next(services);
  networks.accept();
  next(services);
  const nothing = new TestServices();
  for (let times = 0; times < 2; times++) {
    clock.advanceNow(600_000);
    networks.decide(nothing);
  }
  return networks.decide(services);
}

test("any order and splitting of events ends in the owners of a fresh start, once all is accepted and let go", () => {
  fc.assert(
    fc.property(fc.array(vpcEvent, { maxLength: 20 }), services, fc.infiniteStream(fc.nat()), (events, all, random) => {
      const history = setup({ vpcs: "listed" });
      history.start();
      history.next(all);
      for (const one of shuffledAcrossObjects(events, random)) {
        apply(history, one);
        history.clock.advanceNow(one.wait);
        history.networks.decide(all);
      }
      const fresh = setup({ vpcs: "listed" });
      for (const one of events) apply(fresh, one);
      fresh.start();
      const a = settled(history, all);
      const b = settled(fresh, all);
      expect(ownersUnder(a, all)).toEqual(ownersUnder(b, all));
      expect({ exclude: a.excludeCIDRs, own: a.ownCIDRs }).toEqual({ exclude: b.excludeCIDRs, own: b.ownCIDRs });
    }),
    { numRuns: runs(500) },
  );
});

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

/** An own CIDR goes that another network has come to claim as well; the service's endpoint stays. */
const OWN_BENEATH_THEIRS: [Event[], TestServices, number] = [
  [
    { side: "ours", object: "a", cidr: "10.144.0.0/16", wait: 0 },
    { side: "theirs", object: "a", cidr: "10.16.0.0/16", wait: 700_000 },
    { side: "ours", object: "a", cidr: "10.16.0.0/16", wait: 500 },
    { side: "theirs", object: "a", cidr: "10.144.0.0/16", wait: 500 },
    { side: "theirs", object: "a", cidr: "10.16.0.0/16", wait: 700_000 },
  ],
  new TestServices({ s0: ["10.144.0.1"] }),
  0,
];

test("no sequence of events turns more services foreign than the guard allows", () => {
  const percent = fc.constantFrom(0, 10, 34, 50, 99);
  fc.assert(
    fc.property(fc.array(vpcEvent, { maxLength: 30 }), services, percent, (events, all, maxForeignPercent) => {
      const settings = { maxForeignPercent, written: { own: [], excluded: [] } };
      const made = setup({ settings, vpcs: "listed" });
      made.start();
      const before = ownersUnder(made.next(all), all);
      const turned = new Set<number>();
      for (const one of events) {
        apply(made, one);
        made.clock.advanceNow(one.wait);
        const owners = ownersUnder(made.networks.decide(all), all);
        for (const [at, owner] of owners.entries()) {
          if (owner === "foreign" && before[at] !== "foreign") turned.add(Math.floor(at / 2));
        }
        expect(turned.size).toBeLessThanOrEqual((all.size * maxForeignPercent) / 100);
      }
    }),
    { numRuns: runs(1_000), examples: [OWN_BENEATH_THEIRS] },
  );
});

test("whatever happens to the resources themselves, no service that is foreign changes hands", () => {
  const state = fc.constantFrom("absent" as const, "forbidden" as const, "unreachable" as const, "listed" as const);
  const resource = fc.constantFrom(0, 1);
  const happening = fc.oneof(
    fc.record({ state, resource, wait }),
    fc.record({ object, wait }),
    fc.record({ vpc, isDefault: fc.option(fc.boolean(), { nil: undefined }), wait }),
  );
  fc.assert(
    fc.property(
      fc.array(cidr, { maxLength: 4 }),
      services,
      fc.array(happening, { maxLength: 20 }),
      (cidrs, all, happenings) => {
        const made = setup({ settings: { written: { own: [], excluded: [] } }, vpcs: "listed" });
        for (const [at, one] of cidrs.entries()) made.subnet("abcd"[at] ?? "", one, at % 2 === 0 ? "blue" : undefined);
        made.vpc("blue", true);
        made.start();
        const owners = ownersUnder(made.next(all), all);
        for (const one of happenings) {
          if ("state" in one) made.networks.setState(theirs.id, one.resource, one.state);
          else if ("object" in one) made.noSubnet(one.object);
          else if (one.isDefault === undefined) made.noVpc(one.vpc);
          else made.vpc(one.vpc, one.isDefault);
          made.networks.setState(ours.id, 0, "listed");
          made.clock.advanceNow(one.wait);
          expect(ownersUnder(made.networks.decide(all), all)).toEqual(owners);
        }
      },
    ),
    { numRuns: runs(500) },
  );
});
