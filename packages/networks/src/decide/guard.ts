import { IP_FAMILIES } from "@fairlead/base";
import type { EndpointFilter, ServiceKey } from "@fairlead/core";
import type { ServicesView } from "../services/view.ts";
import { bySpecificity, type Claim } from "./claim.ts";
import { longestPrefix } from "./search.ts";

export interface GuardInput {
  /** Learned CIDRs of other networks that nobody consented to. */
  readonly pending: readonly Claim[];
  /** What decides when these count, beside all that do already. */
  readonly filterWith: (pending: readonly Claim[]) => EndpointFilter;
  readonly services: ServicesView;
  /** Services that learned CIDRs turned foreign since the last consent; those that are gone do not count. */
  readonly turned: ReadonlySet<ServiceKey>;
  /** 0 to 100 */
  readonly maxForeignPercent: number;
}

export interface Verdict {
  readonly admitted: readonly Claim[];
  readonly held: readonly Claim[];
  /** Those that the admitted ones turn, and that were not turned before. */
  readonly newlyTurned: ReadonlySet<ServiceKey>;
  /** How many services would turn foreign if the held ones counted, too. */
  readonly heldBack: number;
}

/**
 * Which of the new CIDRs may count: as long as all together they turn no more than a part of the services foreign,
 * counted from the last consent, so that many small steps do not get further than a large one. The more specific come
 * first, so that one that is too wide does not hold up others; what no endpoint lies in turns nothing. Comes in steps:
 * each service is asked for each try.
 */
export function* admit({
  pending,
  filterWith,
  services,
  turned,
  maxForeignPercent,
}: GuardInput): Generator<void, Verdict> {
  const reach = new Map<Claim, ReadonlySet<ServiceKey>>();
  for (const claim of pending) {
    reach.set(claim, services.within(claim.cidr));
    yield;
  }
  const isIdle = (claim: Claim) => reach.get(claim)?.size === 0;
  const idle = pending.filter(isIdle);
  const busy = pending.filter((claim) => !isIdle(claim)).sort(bySpecificity);
  if (busy.length === 0) return { admitted: idle, held: [], newlyTurned: NONE, heldBack: 0 };
  const before = foreignUnder(filterWith([]), services);
  const turnedBy = function* (claims: readonly Claim[]): Generator<void, ReadonlySet<ServiceKey>> {
    const after = foreignUnder(filterWith(claims), services);
    const found = new Set<ServiceKey>();
    for (const claim of claims) {
      for (const key of reach.get(claim) ?? []) {
        if (!turned.has(key) && !found.has(key) && after(key) && !before(key)) found.add(key);
        yield;
      }
    }
    return found;
  };
  const limit = (services.size * maxForeignPercent) / 100;
  const turnedBefore = lazily(() => turned.size - gone(turned, services));
  const fits = function* (count: number) {
    const { size } = yield* turnedBy(busy.slice(0, count));
    // Those that are gone are looked for where it depends on them only.
    return size === 0 || turned.size + size <= limit || turnedBefore() + size <= limit;
  };
  const count = yield* longestPrefix(busy.length, fits);
  const admitted = busy.slice(0, count);
  const heldBack = count === busy.length ? 0 : turnedBefore() + (yield* turnedBy(busy)).size;
  const newlyTurned = yield* turnedBy(admitted);
  return { admitted: [...idle, ...admitted], held: busy.slice(count), newlyTurned, heldBack };
}

const NONE: ReadonlySet<ServiceKey> = new Set();

function gone(keys: ReadonlySet<ServiceKey>, services: ServicesView): number {
  let count = 0;
  for (const key of keys) if (services.service(key) === undefined) count++;
  return count;
}

function lazily<T extends number>(make: () => T): () => T {
  let made: T | undefined;
  return () => (made ??= make());
}

/** Whether a service is foreign in any of its families. */
function foreignUnder({ decide }: EndpointFilter, services: ServicesView) {
  return (key: ServiceKey): boolean => {
    const service = services.service(key);
    if (service === undefined) return false;
    return IP_FAMILIES.some((family) => {
      const addresses = services.addresses(key, family);
      return addresses.length > 0 && decide(service, family, addresses, undefined).ownership === "foreign";
    });
  };
}
