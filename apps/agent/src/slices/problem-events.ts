import { objectAt, textAt } from "@fairlead/base";
import type { NodeEvents } from "@fairlead/intake";
import type { Log } from "../log/log.ts";
import type { Key } from "./key.ts";
import type { SliceProblem } from "./service.ts";

export interface ProblemEventsParts {
  readonly events: Pick<NodeEvents, "report">;
  readonly log: Log;
}

/** What is wrong with Services, in the log and as Events on them: once for each change of it. */
export class ProblemEvents {
  readonly #parts: ProblemEventsParts;
  readonly #uids = new Map<Key, string>();
  readonly #open = new Map<Key, readonly SliceProblem[]>();

  constructor(parts: ProblemEventsParts) {
    this.#parts = parts;
  }

  /** Services that have a problem now, by its reason. */
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

  /** All that is wrong with a Service now. */
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
