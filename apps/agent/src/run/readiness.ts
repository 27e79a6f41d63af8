import type { Clock } from "@fairlead/base";

/**
 * What the first sync may have to wait for: the complete lists, the first listing of this node's addresses, and of the
 * own Node its object, its addresses and its podCIDRs, and the first decision about learned networks.
 */
export type Prerequisite =
  | "services"
  | "endpointSlices"
  | "addresses"
  | "node"
  | "nodeAddresses"
  | "podCIDRs"
  | "networks";

/** These may never come, and there is something to serve without them. */
const OPTIONAL: ReadonlySet<Prerequisite> = new Set(["node", "nodeAddresses"]);

/** Milliseconds that everything else waits for those; kube-proxy waits as long for the Node's addresses. */
const GRACE_MS = 30_000;

export interface ReadinessOptions {
  /** All that is waited for. */
  readonly needs: readonly Prerequisite[];
  readonly clock: Pick<Clock, "after">;
  /** Called once: the first sync may be made. `without` is what has not come. */
  readonly onReady: (without: readonly Prerequisite[]) => void;
}

/**
 * Reports once when the first sync may be made. What rules were made without would be missing in them until the next
 * sync.
 */
export class Readiness {
  readonly #options: ReadinessOptions;
  readonly #missing: Set<Prerequisite>;
  #ready = false;
  #waiting = false;

  constructor(options: ReadinessOptions) {
    this.#options = options;
    this.#missing = new Set(options.needs);
  }

  get ready(): boolean {
    return this.#ready;
  }

  /** This has come. */
  known(prerequisite: Prerequisite): void {
    this.#missing.delete(prerequisite);
    if (this.#ready) return;
    if (this.#missing.size === 0) this.#notify();
    else if (!this.#waiting && [...this.#missing].every((one) => OPTIONAL.has(one))) {
      this.#waiting = true;
      this.#options.clock.after(GRACE_MS, () => this.#notify());
    }
  }

  #notify(): void {
    if (this.#ready) return;
    this.#ready = true;
    this.#options.onReady([...this.#missing]);
  }
}
