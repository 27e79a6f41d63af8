import { type Clock, errorChainText } from "@fairlead/base";
import type { Log } from "../log/log.ts";
import { eventObject, KUBE_PROXY, type NodeEvent, namespaceOf } from "./node-event.ts";

export interface NodeEventsParts {
  readonly node: string;
  /** The component that reports them. Default: kube-proxy's. */
  readonly component?: string;
  /** Creates the object in a namespace and gives the server's status. */
  readonly post: (namespace: string, event: unknown) => Promise<number>;
  /** metadata.uid of a Service that an Event names without it. Default: none is asked for. */
  readonly serviceUID?: ((namespace: string, name: string) => Promise<string | undefined>) | undefined;
  readonly clock: Pick<Clock, "now" | "monotonic">;
  readonly log: Log;
}

/**
 * Milliseconds before an event of the same reason about the same object is sent again: the API server keeps them for an
 * hour.
 */
const PAUSE_MS = 600_000;
/** Events about Services in one pause at most: thousands of them may have the same trouble at once. */
const MOST_OF_SERVICES = 25;

/**
 * Tells Events about the own Node and about Services. They are a courtesy: what cannot be sent is dropped, and after
 * the server said that the role does not allow it nothing is sent anymore.
 */
export class NodeEvents {
  readonly #parts: NodeEventsParts;
  /** Reason and object → when it was sent; the oldest first, none older than a pause. */
  readonly #sent = new Map<string, number>();
  #allowed = true;

  constructor(parts: NodeEventsParts) {
    this.#parts = parts;
  }

  /** Resolves when the server has answered, or nothing is sent; never rejects. */
  async report(event: NodeEvent): Promise<void> {
    const { node, component = KUBE_PROXY, post, clock, log } = this.#parts;
    if (!this.#allowed || !this.#due(event)) return;
    const id = Math.trunc(clock.now() * 1e6 + this.#sent.size).toString(16);
    try {
      const object = eventObject(await this.#withUID(event), node, component, clock.now(), id);
      const status = await post(namespaceOf(event), object);
      if (status === 201) return;
      if (status === 403) this.#forbidden();
      else log.verbose(2, "API server rejected an Event", { reason: event.reason, status });
    } catch (error) {
      log.verbose(2, "Failed to send an Event", { reason: event.reason, error: errorChainText(error) });
    }
  }

  /** Without the uid an Event is found by the Service's name only, which is better than no Event. */
  async #withUID(event: NodeEvent): Promise<NodeEvent> {
    const { serviceUID, log } = this.#parts;
    const { service } = event;
    if (service === undefined || service.uid !== undefined || serviceUID === undefined) return event;
    try {
      const uid = await serviceUID(service.namespace, service.name);
      return uid === undefined ? event : { ...event, service: { ...service, uid } };
    } catch (error) {
      const { namespace, name } = service;
      const fields = { service: `${namespace}/${name}`, error: errorChainText(error) };
      log.verbose(2, "Failed to read the uid of a Service; its Event is sent without", fields);
      return event;
    }
  }

  #due({ reason, service }: NodeEvent): boolean {
    const now = this.#parts.clock.monotonic();
    for (const [key, at] of this.#sent) {
      if (now - at < PAUSE_MS) break;
      this.#sent.delete(key);
    }
    const key = service === undefined ? reason : `${reason} ${service.namespace}/${service.name}`;
    if (this.#sent.has(key) || (service !== undefined && this.#sent.size >= MOST_OF_SERVICES)) return false;
    this.#sent.set(key, now);
    return true;
  }

  #forbidden(): void {
    if (this.#allowed) this.#parts.log.info("Events disabled; the role does not allow creating them");
    this.#allowed = false;
  }
}
