import fc from "fast-check";

export const CROWD_ENDPOINTS = 12;
export type Condition = "ready" | "terminating" | "unready" | "none";

/** What happens to a service with affinity; all its clients connect after each step that they do not sleep through. */
export type CrowdStep =
  | { readonly kind: "endpoints"; readonly conditions: readonly Condition[] }
  /** One goes and comes, so that others have to be left alone. */
  | { readonly kind: "toggle"; readonly at: number; readonly to: Condition }
  | { readonly kind: "timeout"; readonly seconds: number }
  /** Seconds; fewer than the shortest timeout. */
  | { readonly kind: "wait"; readonly seconds: number }
  /** Longer than all timeouts. */
  | { readonly kind: "long-wait" }
  /** Deleted, and made again: with the same endpoints. */
  | { readonly kind: "again" }
  /** Another service of the same endpoints gets its addresses, in one change. */
  | { readonly kind: "other" }
  /** Its port gets another name. */
  | { readonly kind: "renamed" }
  | { readonly kind: "full-sync" }
  | { readonly kind: "restart" }
  /** kube-proxy serves for a while; only where there is a stand-in for it. */
  | { readonly kind: "kube-proxy" };

/** A step, and whether clients sleep through it. */
export type CrowdHistory = readonly { readonly step: CrowdStep; readonly asleep: boolean }[];

const TIMEOUTS = [600, 3600, 10_800] as const;
export const LONGER_THAN_ALL = 10_801;

const condition = fc.constantFrom<Condition>("ready", "ready", "ready", "terminating", "unready", "none");
const some = fc.array(condition, { minLength: CROWD_ENDPOINTS, maxLength: CROWD_ENDPOINTS });
const nobody = fc.constant<readonly Condition[]>(Array.from({ length: CROWD_ENDPOINTS }, () => "none"));
const one = fc
  .nat({ max: CROWD_ENDPOINTS - 1 })
  .map((at): readonly Condition[] =>
    Array.from({ length: CROWD_ENDPOINTS }, (_, each) => (each === at ? "ready" : "none")),
  );

const step: fc.Arbitrary<CrowdStep> = fc.oneof(
  { weight: 3, arbitrary: fc.record({ kind: fc.constant("endpoints"), conditions: fc.oneof(some, nobody, one) }) },
  {
    weight: 6,
    arbitrary: fc.record({ kind: fc.constant("toggle"), at: fc.nat({ max: CROWD_ENDPOINTS - 1 }), to: condition }),
  },
  fc.record({ kind: fc.constant("timeout"), seconds: fc.constantFrom(...TIMEOUTS) }),
  fc.record({ kind: fc.constant("wait"), seconds: fc.integer({ min: 1, max: 40 }) }),
  fc.constantFrom<CrowdStep>(
    { kind: "long-wait" },
    { kind: "again" },
    { kind: "other" },
    { kind: "renamed" },
    { kind: "full-sync" },
    { kind: "restart" },
    { kind: "restart" },
    { kind: "kube-proxy" },
  ),
);

/** @param most steps */
export function crowdHistory(most = 12): fc.Arbitrary<CrowdHistory> {
  // Not so often, that clients forget by the clock.
  const asleep = fc.integer({ min: 0, max: 4 }).map((number) => number === 0);
  return fc.array(fc.record({ step, asleep }), { minLength: 3, maxLength: most });
}
