import type { Resource } from "@fairlead/intake";
import type { Clock } from "../clock.ts";

/** Milliseconds that complete Services and EndpointSlices wait for the own Node, which comes at the same time or never. */
const nodeGrace = 1_000;

/**
 * Tells once when the first sync may be made: as soon as Services and EndpointSlices are complete, with the own Node if
 * it comes in time (its zone and addresses shape the rules).
 */
export class Readiness {
  readonly #clock: Clock;
  readonly #onReady: () => void;
  /** Whether the rules cannot be made without something of the own Node. */
  #needsNode: boolean;
  readonly #complete = new Set<Resource>();
  #ready = false;
  #waiting = false;

  /** @param needsNode nothing is begun before `nodeKnown` */
  constructor(clock: Clock, onReady: () => void, needsNode = false) {
    this.#clock = clock;
    this.#onReady = onReady;
    this.#needsNode = needsNode;
  }

  get ready(): boolean {
    return this.#ready;
  }

  synced(resource: Resource): void {
    this.#complete.add(resource);
    this.#look();
  }

  /** What is needed of the own Node is there. */
  nodeKnown(): void {
    this.#needsNode = false;
    this.#look();
  }

  #look(): void {
    if (this.#ready || this.#needsNode || !this.#complete.has("services") || !this.#complete.has("endpointSlices"))
      return;
    if (this.#complete.has("node")) {
      this.#tell();
    } else if (!this.#waiting) {
      this.#waiting = true;
      this.#clock.after(nodeGrace, () => this.#tell());
    }
  }

  #tell(): void {
    if (this.#ready) return;
    this.#ready = true;
    this.#onReady();
  }
}
