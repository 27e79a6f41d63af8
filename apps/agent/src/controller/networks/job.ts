/** The job of secondary networks: what it follows, and what it does while this process leads. */

import { type Clock, errorChainText, objectAt, textAt } from "@fairlead/base";
import type { NodeEvents } from "@fairlead/intake";
import type { OtherState } from "@fairlead/watch";
import type { Log } from "../../log.ts";
import { type Key, type Send, sliceWriter } from "../requests.ts";
import { type Needed, slicesSubscriptions } from "./api.ts";
import type { SliceProblem } from "./decode.ts";
import { SliceController } from "./slice-controller.ts";
import { SliceState } from "./slice-state.ts";

interface NetworkJobOptions extends ProblemEventsParts {
  readonly send: Send;
  readonly clock: Clock;
  readonly serviceProxyName: string;
  readonly maxEndpointsPerSlice: number;
  /** The first complete list of a resource is in the state. */
  readonly onSynced: (resource: Needed) => void;
  readonly onState: (resource: Needed | "networks", state: OtherState) => void;
}

export const NETWORK_RESOURCES: readonly Needed[] = ["services", "pods", "nodes", "endpointSlices", "serviceCIDRs"];

export class NetworkJob {
  readonly #options: NetworkJobOptions;
  readonly #state = new SliceState();
  readonly #problems: ProblemEvents;
  #changed = () => {};

  constructor(options: NetworkJobOptions) {
    this.#options = options;
    this.#problems = new ProblemEvents(options);
  }

  get subscriptions() {
    const { serviceProxyName, onSynced, onState } = this.#options;
    return slicesSubscriptions({
      state: this.#state,
      serviceProxyName,
      onChange: () => this.#changed(),
      onService: (key, raw) => this.#problems.setService(key, raw),
      onSynced,
      onState,
    });
  }

  get problems(): ReadonlyMap<string, number> {
    return this.#problems.counts;
  }

  /** Until the signal aborts, or this process may no longer write. The first complete lists have to be there. */
  async lead(signal: AbortSignal, mayWrite: () => boolean): Promise<void> {
    const { send, clock, log, maxEndpointsPerSlice } = this.#options;
    const controller = new SliceController({
      state: this.#state,
      writer: sliceWriter(send),
      clock,
      most: maxEndpointsPerSlice,
      mayWrite,
      onProblems: (key, of) => this.#problems.report(key, of),
      onError: (service, error, retryMs) =>
        log.warn("Failed to write EndpointSlices; retrying", { service, retryMs, error: errorChainText(error) }),
    });
    this.#changed = () => controller.changed();
    this.#state.allAgain();
    await controller.run(signal);
  }
}

interface ProblemEventsParts {
  readonly events: Pick<NodeEvents, "report">;
  readonly log: Log;
}

/** What is wrong with Services, in the log and as Events on them: once for each change of it. */
class ProblemEvents {
  readonly #parts: ProblemEventsParts;
  readonly #uids = new Map<Key, string>();
  readonly #open = new Map<Key, readonly SliceProblem[]>();

  constructor(parts: ProblemEventsParts) {
    this.#parts = parts;
  }

  get counts(): ReadonlyMap<string, number> {
    const counts = new Map<string, number>();
    for (const { reason } of [...this.#open.values()].flat()) counts.set(reason, (counts.get(reason) ?? 0) + 1);
    return counts;
  }

  /** @param raw undefined: it is gone */
  setService(key: Key, raw: unknown): void {
    const uid = textAt(objectAt(raw, "metadata"), "uid");
    if (uid === undefined) this.#uids.delete(key);
    else this.#uids.set(key, uid);
    if (raw === undefined) this.#open.delete(key);
  }

  report(key: Key, problems: readonly SliceProblem[]): void {
    const { events, log } = this.#parts;
    const [namespace, name] = key.split("/") as [string, string];
    const known = new Set(this.#open.get(key)?.map(({ reason, message }) => `${reason} ${message}`));
    if (problems.length > 0) this.#open.set(key, problems);
    // A Service that is gone has none either, which is no news.
    else if (this.#open.delete(key))
      log.info("Service on a secondary network has no problem any longer", { service: key });
    const uid = this.#uids.get(key);
    for (const { reason, message } of problems) {
      if (known.has(`${reason} ${message}`)) continue;
      log.warn("Problem with a Service on a secondary network; the endpoints concerned are left out", {
        service: key,
        reason,
        message,
      });
      const service = { namespace, name, ...(uid !== undefined && { uid }) };
      void events.report({ type: "Warning", reason, message, service });
    }
  }
}
