import type { ModeSemantics } from "./mode-semantics.ts";
import type { ForwardingPlan, PlanChange } from "./plan.ts";

/** What one sync wrote, for metrics and logs. */
export interface SyncReport {
  /** full: everything was compared or written. partial: what one change touches. */
  readonly kind: "full" | "partial";
  /**
   * Kernel objects that the plan needs in all and that this sync wrote, by the mode's own kinds (iptables: by table).
   */
  readonly objects: Readonly<Record<string, { readonly total: number; readonly written: number }>>;
  /**
   * Objects that the kernel refused where a mode has no transaction, in words for a log: what of a service needs them
   * is not served, all else is. The next full sync tries them again. Absent: none.
   */
  readonly refused?: readonly string[];
}

/** What a look at the kernel found that is not as it was programmed. */
export interface Difference {
  /** What differs, in words for a log, at least one: `chain services has other rules`. */
  readonly what: readonly string[];
  /** The processes that changed it, where the kernel says so: `nft (4711)`. */
  readonly by?: readonly string[];
  /** It has been written again; else a full sync is needed. */
  readonly repaired: boolean;
}

/**
 * A mode's kernel side for one IP family. The caller runs one call at a time and gives every change to exactly one of
 * `apply` and `sync`. After a rejected call the kernel still serves the last good state and the caller calls `sync`.
 */
export interface Backend {
  /** How the planner has to read policies for this mode. */
  readonly semantics: ModeSemantics;
  /**
   * The next call will be `sync`, with a plan that is being made or whose objects are still being read: begins to read
   * what that needs of the kernel. What a call before this one has read is kept while it is new enough.
   */
  prepare?(): void;
  /** Makes the kernel equal to the plan, whatever it holds now. Leaves what is not ours only. */
  sync(plan: ForwardingPlan): Promise<SyncReport>;
  /** Takes the kernel from the plan before `change` to `plan`; the cost follows the change. */
  apply(plan: ForwardingPlan, change: PlanChange): Promise<SyncReport>;
  /**
   * Looks whether the kernel still has what was programmed, as far as the mode looks (flushed tables). Cheap where
   * nothing has changed.
   *
   * @returns undefined: it has
   */
  difference(plan: ForwardingPlan): Promise<Difference | undefined>;
  /**
   * Looks after what has to wait, where the mode has such a thing (ipvs: destinations that drain). Absent, or
   * undefined:
   * there is nothing to look after until the next sync or change.
   *
   * @returns milliseconds until it should be called again
   */
  maintain?(): Promise<number | undefined>;
  /** Removes everything that this mode ever programs, kube-proxy's leftovers of the mode included. */
  cleanup(): Promise<void>;
}
