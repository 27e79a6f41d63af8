import { VPC_SELECTION } from "../sources/kube-ovn-subnets.ts";
import { type ResourceState, stateAfter } from "./facts.ts";

/**
 * The names of kube-ovn's default VPC, for rules that ask for them. Several are where its name was changed: the old one
 * says so for good. The last ones stay while none says so: a CRD that is deleted takes all its objects with it.
 */
export class DefaultVPCs {
  readonly #byObject = new Map<string, string>();
  #names: ReadonlySet<string>;
  #state: ResourceState = "waiting";

  /** @param known what the agent before this one knew */
  constructor(known: readonly string[] = []) {
    this.#names = new Set(known);
  }

  get names(): ReadonlySet<string> {
    return this.#names;
  }

  get state(): ResourceState {
    return this.#state;
  }

  /** Nothing is waited for: what there is to know at a start is known. */
  get settled(): boolean {
    return this.#names.size > 0 || this.#state !== "waiting";
  }

  /**
   * @param raw a Vpc, straight from JSON and untrusted; undefined: it is gone
   * @returns whether there are other names than before
   */
  set(object: string, raw: unknown): boolean {
    const name = VPC_SELECTION.read(raw);
    if (name === undefined) this.#byObject.delete(object);
    else this.#byObject.set(object, name);
    const names = new Set([...this.#byObject.values()].sort());
    if (names.size === 0 || [...names].join() === [...this.#names].join()) return false;
    this.#names = names;
    return true;
  }

  setState(state: Exclude<ResourceState, "waiting">): void {
    this.#state = stateAfter(this.#state, state);
  }
}
