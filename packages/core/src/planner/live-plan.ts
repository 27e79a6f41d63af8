import { equal } from "../data/equal.ts";
import type { IPFamily, ServiceKey } from "../objects.ts";
import type { ForwardingPlan, HealthCheck, NodePlan, ServicePortGroup } from "../plan.ts";
import { ChangeCollector } from "./change-collector.ts";
import { CountedSet } from "./counted-set.ts";
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

  /** What changed since that was last told. */
  get changes(): ChangeCollector {
    return this.#changes;
  }

  setNode(node: NodePlan): void {
    if (equal(this.#node, node)) return;
    this.#changes.touchNode();
    this.#node = node;
  }

  /** Replaces all that a service has in the plan. */
  replace(key: ServiceKey, before: ServiceRecord | undefined, after: ServiceRecord | undefined): void {
    const stay = new Set(after?.groups.map((group) => group.id));
    for (const group of before?.groups ?? []) {
      if (!stay.has(group.id)) this.#removeGroup(group);
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
