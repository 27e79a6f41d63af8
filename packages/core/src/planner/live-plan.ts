/** The plan as it stands, and what of it changes in a step. */

import { equal } from "../data.ts";
import type { IPFamily, ServiceKey } from "../objects.ts";
import type { ForwardingPlan, GroupChange, HealthCheck, NodePlan, PlanChange, ServicePortGroup } from "../plan.ts";
import type { ServiceRecord } from "./service-plan.ts";

/** The plan of a family as it is now; the collector hears of each addition and removal. */
export class LivePlan implements ForwardingPlan {
  readonly family: IPFamily;
  readonly #groups = new Map<string, ServicePortGroup>();
  readonly #healthChecks = new Map<ServiceKey, HealthCheck>();
  readonly #foreignClusterIPs = new CountedSet<string>();
  readonly #changes: ChangeCollector;
  #node: NodePlan;
  #endpointCount = 0;

  constructor(family: IPFamily, node: NodePlan) {
    this.family = family;
    this.#node = node;
    this.#changes = new ChangeCollector(this);
  }

  get groups(): ReadonlyMap<string, ServicePortGroup> {
    return this.#groups;
  }

  get node(): NodePlan {
    return this.#node;
  }

  get healthChecks(): ReadonlyMap<ServiceKey, HealthCheck> {
    return this.#healthChecks;
  }

  get foreignClusterIPs(): ReadonlySet<string> {
    return this.#foreignClusterIPs.members;
  }

  get endpointCount(): number {
    return this.#endpointCount;
  }

  /** What changed since the last report. */
  get changes(): ChangeCollector {
    return this.#changes;
  }

  setNode(node: NodePlan): void {
    if (equal(this.#node, node)) return;
    this.#changes.touchNode();
    this.#node = node;
  }

  replace(key: ServiceKey, before: ServiceRecord | undefined, after: ServiceRecord | undefined): void {
    if (before !== undefined) {
      const stay = new Set(after?.groups.map((group) => group.id));
      for (const group of before.groups) if (!stay.has(group.id)) this.#removeGroup(group);
    }
    for (const group of after?.groups ?? []) this.#putGroup(group);
    this.#setHealthCheck(key, after?.healthCheck);
    this.#moveForeign(before?.foreignClusterIP, after?.foreignClusterIP);
  }

  #putGroup(group: ServicePortGroup): void {
    const old = this.#groups.get(group.id);
    if (old === group) return;
    this.#changes.touchGroup(group.id);
    this.#groups.set(group.id, group);
    this.#endpointCount += group.endpointCount - (old?.endpointCount ?? 0);
  }

  #removeGroup(group: ServicePortGroup): void {
    this.#changes.touchGroup(group.id);
    if (this.#groups.delete(group.id)) this.#endpointCount -= group.endpointCount;
  }

  #setHealthCheck(key: ServiceKey, check: HealthCheck | undefined): void {
    if (equal(this.#healthChecks.get(key), check)) return;
    this.#changes.touchHealthCheck(key);
    if (check === undefined) this.#healthChecks.delete(key);
    else this.#healthChecks.set(key, check);
  }

  #moveForeign(from: string | undefined, to: string | undefined): void {
    if (from === to) return;
    if (to !== undefined) {
      this.#changes.touchForeignClusterIP(to);
      this.#foreignClusterIPs.add(to);
    }
    if (from !== undefined) {
      this.#changes.touchForeignClusterIP(from);
      this.#foreignClusterIPs.delete(from);
    }
  }
}

/**
 * Remembers the previous state of what a plan changes, so that it can report the step from there to the current plan.
 * What was touched and is equal again is not a change.
 */
class ChangeCollector {
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

/** A set in which a member stays until it was deleted as often as it was added. */
class CountedSet<T> {
  readonly #members = new Set<T>();
  /** How often beyond the first, for the few members where it is so. */
  readonly #extra = new Map<T, number>();

  get members(): ReadonlySet<T> {
    return this.#members;
  }

  add(member: T): void {
    if (this.#members.has(member)) this.#extra.set(member, (this.#extra.get(member) ?? 0) + 1);
    else this.#members.add(member);
  }

  delete(member: T): void {
    const extra = this.#extra.get(member) ?? 0;
    if (extra === 0) this.#members.delete(member);
    else if (extra === 1) this.#extra.delete(member);
    else this.#extra.set(member, extra - 1);
  }
}
