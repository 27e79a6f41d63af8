import { equal } from "../data/equal.ts";
import type { ServiceKey } from "../objects.ts";
import type { ForwardingPlan, GroupChange, HealthCheck, NodePlan, PlanChange, ServicePortGroup } from "../plan.ts";

/**
 * Remembers how what is touched in a plan was before, so that the step from there to the plan as it is can be told.
 * What was touched and is equal again is no change.
 */
export class ChangeCollector {
  readonly #plan: ForwardingPlan;
  #groups = new Map<string, ServicePortGroup | undefined>();
  #healthChecks = new Map<ServiceKey, HealthCheck | undefined>();
  #foreignClusterIPs = new Map<string, boolean>();
  #node: NodePlan | undefined;

  constructor(plan: ForwardingPlan) {
    this.#plan = plan;
  }

  touchGroup(id: string): void {
    if (!this.#groups.has(id)) this.#groups.set(id, this.#plan.groups.get(id));
  }

  touchHealthCheck(key: ServiceKey): void {
    if (!this.#healthChecks.has(key)) this.#healthChecks.set(key, this.#plan.healthChecks.get(key));
  }

  touchForeignClusterIP(ip: string): void {
    if (!this.#foreignClusterIPs.has(ip)) this.#foreignClusterIPs.set(ip, this.#plan.foreignClusterIPs.has(ip));
  }

  touchNode(): void {
    this.#node ??= this.#plan.node;
  }

  /** The change since `forget`; undefined: none. Yields after each group, as a start has all of them. */
  *change(): Generator<void, PlanChange | undefined> {
    const plan = this.#plan;
    const groups = new Map<string, GroupChange>();
    for (const [id, before] of this.#groups) {
      const change = groupChange(before, plan.groups.get(id));
      if (change !== undefined) groups.set(id, change);
      yield;
    }
    const healthChecks = new Map(
      [...this.#healthChecks]
        .map(([key, before]) => ({ key, before, after: plan.healthChecks.get(key) }))
        .filter(({ before, after }) => !equal(before, after))
        .map(({ key, after }) => [key, after]),
    );
    const { added, removed } = this.#foreignMoves();
    const before = this.#node;
    const node = before === undefined || equal(before, plan.node) ? undefined : { before, after: plan.node };
    if (groups.size + healthChecks.size + added.length + removed.length === 0 && node === undefined) return undefined;
    const change = { family: plan.family, groups, healthChecks, foreignClusterIPs: { added, removed } };
    return node === undefined ? change : { ...change, node };
  }

  /** What is so now is what changes begin from. */
  forget(): void {
    this.#groups = new Map();
    this.#healthChecks = new Map();
    this.#foreignClusterIPs = new Map();
    this.#node = undefined;
  }

  #foreignMoves(): { added: readonly string[]; removed: readonly string[] } {
    const now = this.#plan.foreignClusterIPs;
    const touched = [...this.#foreignClusterIPs];
    return {
      added: touched.filter(([ip, was]) => !was && now.has(ip)).map(([ip]) => ip),
      removed: touched.filter(([ip, was]) => was && !now.has(ip)).map(([ip]) => ip),
    };
  }
}

function groupChange(
  before: ServicePortGroup | undefined,
  after: ServicePortGroup | undefined,
): GroupChange | undefined {
  if (before === after || equal(before, after)) return undefined;
  return { ...(before === undefined ? {} : { before }), ...(after === undefined ? {} : { after }) };
}
