import { type Clock, errorChainText, objectAt, objectsAt, textAt } from "@fairlead/base";
import type { ObjectRequest, PostAnswer } from "@fairlead/watch";

/** Where is said what becomes of Events. */
interface EventLog {
  info(message: string, fields?: Readonly<Record<string, unknown>>): void;
  verbose(verbosity: number, message: string, fields: Readonly<Record<string, unknown>>): void;
}

export interface NodeEventsParts {
  readonly node: string;
  /** The component that reports them. Default: kube-proxy's. */
  readonly component?: string;
  /** Creates the object in a namespace and gives the server's status. */
  readonly post: (namespace: string, event: unknown) => Promise<number>;
  /** metadata.uid of a Service that an Event names without it. Default: none is asked for. */
  readonly serviceUID?: ((namespace: string, name: string) => Promise<string | undefined>) | undefined;
  readonly clock: Pick<Clock, "now" | "monotonic">;
  readonly log: EventLog;
  /** 0 to below 1; makes names of Events unique. Default: Math.random. */
  readonly random?: () => number;
}

/**
 * Milliseconds before an event of the same reason about the same object is sent again: the API server keeps them for an
 * hour.
 */
const PAUSE_MS = 600_000;
/** Events about the Services of one namespace in one pause: its owner must not use up those of the others. */
const MOST_OF_NAMESPACE = 10;
/**
 * Events about Services in one pause, beyond which each namespace has one: thousands of Services may have the same
 * trouble at once.
 */
const MANY_OF_SERVICES = 100;

/**
 * Sends Events about the own Node and about Services. They are a courtesy: what cannot be sent is dropped. A refusal
 * says nothing about the next one: the server answers 403 for a namespace that is being deleted, a quota and an
 * admission policy as well, and the owner of the namespace can cause these.
 */
export class NodeEvents {
  readonly #parts: NodeEventsParts;
  /** Reason and object → when it was sent, and a Service's namespace; the oldest first, none older than a pause. */
  readonly #sent = new Map<string, { readonly at: number; readonly namespace: string | undefined }>();
  /** Namespaces whose last Event was refused; this is logged once. */
  readonly #refused = new Set<string>();

  constructor(parts: NodeEventsParts) {
    this.#parts = parts;
  }

  /** Resolves when the server has answered, or nothing is sent; never rejects. */
  async report(given: NodeEvent): Promise<void> {
    const room = this.#room(given);
    if (room === 0) return;
    const isLast = given.service !== undefined && room === 1;
    const event = isLast ? { ...given, message: given.message.slice(0, LONGEST_MESSAGE - LAST.length) + LAST } : given;
    const { node, component = KUBE_PROXY, post, clock, log, random = Math.random } = this.#parts;
    const namespace = namespaceOf(event);
    const id = uniqueID(clock.now(), random());
    try {
      const object = eventObject(await this.#withUID(event), node, component, clock.now(), id);
      this.#answered(event, namespace, await post(namespace, object));
    } catch (error) {
      log.verbose(2, "Failed to send an Event", { reason: event.reason, error: errorChainText(error) });
    }
  }

  #answered({ reason }: NodeEvent, namespace: string, status: number): void {
    const { log } = this.#parts;
    if (status === 201) this.#refused.delete(namespace);
    else if (status !== 403 || this.#refused.has(namespace))
      log.verbose(2, "API server rejected an Event; it is dropped", { reason, namespace, status });
    else {
      if (this.#refused.size >= MOST_REFUSED) this.#refused.clear();
      this.#refused.add(namespace);
      const why = "the namespace is being deleted, a quota or policy refuses it, or the role does not allow it";
      log.info(`API server refused an Event; it is dropped: ${why}`, { reason, namespace, status });
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

  /** How many Events there is room for, this one included, which counts as sent; 0: it is dropped. */
  #room({ reason, service }: NodeEvent): number {
    const now = this.#parts.clock.monotonic();
    this.#forget(now - PAUSE_MS);
    const key = service === undefined ? reason : `${reason} ${service.kind} ${service.namespace}/${service.name}`;
    if (this.#sent.has(key)) return 0;
    const room = service === undefined ? 1 : this.#roomOf(service.namespace);
    if (room > 0) this.#sent.set(key, { at: now, namespace: service?.namespace });
    return room;
  }

  #roomOf(namespace: string): number {
    const ofServices = Array.from(this.#sent.values(), (one) => one.namespace).filter((one) => one !== undefined);
    const own = ofServices.filter((one) => one === namespace).length;
    return Math.max(0, (ofServices.length < MANY_OF_SERVICES ? MOST_OF_NAMESPACE : 1) - own);
  }

  #forget(until: number): void {
    for (const [key, { at }] of this.#sent) {
      if (at > until) break;
      this.#sent.delete(key);
    }
  }
}

/** What the last Event about a namespace says in addition: those that come now are dropped, and not sent later. */
const LAST = ". There may be more Services like it in this namespace, without an Event: see `fairlead doctor`";

/** Namespaces whose refusals are remembered. */
const MOST_REFUSED = 1_000;

/** Milliseconds and 48 random bits, which is what a number holds exactly. */
function uniqueID(now: number, random: number): string {
  const bits = Math.trunc(random * 2 ** 48);
  return `${Math.trunc(now).toString(16)}${bits.toString(16).padStart(12, "0")}`;
}

interface ServiceReference {
  /** Absent: it is a Service. An object of another kind has an Event by the same rules. */
  readonly apiVersion?: string;
  readonly kind?: string;
  /** "": it is in none, and its Events are in `default`. */
  readonly namespace: string;
  readonly name: string;
  /** metadata.uid, by which `kubectl describe` finds an Event; absent: not known. */
  readonly uid?: string;
}

/** What an operator should find with `kubectl describe` of the own Node, or of a Service. */
export interface NodeEvent {
  readonly type: "Normal" | "Warning";
  /** One word, as machines compare it: `SyncFailed`. */
  readonly reason: string;
  readonly message: string;
  /** What was done, one word as well; absent where nothing was. */
  readonly action?: string;
  /** The Service that it is about; absent: the own Node. */
  readonly service?: ServiceReference;
}

/** Events live in the namespace of what they are about (the API server checks it); those about Nodes in `default`. */
function namespaceOf({ service }: NodeEvent): string {
  return service?.namespace || "default";
}

/** Bytes of a message that the API server takes. */
const LONGEST_MESSAGE = 1_024;
/** What of a name leaves room for the rest of an Event's: 253 characters in all. */
const LONGEST_NAME = 220;

/** The component of kube-proxy's Events, so that a search for those finds ours. */
const KUBE_PROXY = "kube-proxy";

/** The component of Events: kube-proxy's, or that of a second proxy alongside it. */
export function componentOf(serviceProxyName: string): string {
  return serviceProxyName === "" ? KUBE_PROXY : `fairlead-${serviceProxyName}`;
}

/**
 * A core/v1 Event about the own Node or a Service.
 *
 * @param component that reports it
 * @param id makes the name unique
 */
function eventObject(event: NodeEvent, node: string, component: string, at: number, id: string): unknown {
  const { type, reason, message, action, service } = event;
  const time = `${new Date(at).toISOString().slice(0, 19)}Z`;
  return {
    apiVersion: "v1",
    kind: "Event",
    metadata: { name: `${(service?.name ?? node).slice(0, LONGEST_NAME)}.${id}`, namespace: namespaceOf(event) },
    involvedObject:
      service === undefined
        ? { kind: "Node", name: node, uid: node }
        : { apiVersion: "v1", kind: "Service", ...service },
    type,
    reason,
    message: message.slice(0, LONGEST_MESSAGE),
    ...(action === undefined ? {} : { action }),
    source: { component, host: node },
    reportingComponent: component,
    reportingInstance: node,
    firstTimestamp: time,
    lastTimestamp: time,
    count: 1,
  };
}

/** The API server's store takes no object of this size. */
const MOST_BYTES = 2 ** 21;

/**
 * metadata.uid of a Service, by which `kubectl describe service` finds its Events. It is read when there is an Event to
 * send: keeping it of every Service would cost memory on every node. The Service is listed by its name, since the role
 * of a proxy may list Services and not get them.
 *
 * @param send one request, which rejects when there is no answer
 * @returns undefined: there is no such Service, or it may not be read
 * @throws Error when there is no answer, or one that cannot be read
 */
export async function serviceUID(
  send: (request: ObjectRequest) => Promise<PostAnswer>,
  namespace: string,
  name: string,
): Promise<string | undefined> {
  const query = new URLSearchParams({ fieldSelector: `metadata.name=${name}`, resourceVersion: "0" });
  const path = `/api/v1/namespaces/${encodeURIComponent(namespace)}/services?${query}`;
  const { status, body } = await send({ method: "GET", path, mostBytes: MOST_BYTES });
  if (status !== 200) return undefined;
  const [found] = objectsAt(JSON.parse(body), "items");
  return found && textAt(objectAt(found, "metadata"), "uid");
}
