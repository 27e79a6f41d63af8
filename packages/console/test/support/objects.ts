import { get, type IncomingMessage } from "node:http";
import { type FollowedStream, follow } from "@fairlead/base/testing";
import { endpointSlice, node, type RawObject, service } from "@fairlead/testkit";
import { testSignal } from "@fairlead/tooling/test-signal";
import type {
  ObjectKey,
  ObjectSource,
  OtherState,
  OtherSubscription,
  Subscription,
  Subscriptions,
} from "@fairlead/watch";

/** A small shop on two nodes: our network on 10.144.0.0/16, another one's on 10.244.0.0/16. */
export const shop: readonly RawObject[] = [
  node("node-a", { zone: "east", addresses: ["10.201.0.10"] }),
  node("node-b", { zone: "west", addresses: ["10.202.0.10"] }),
  service("web", {
    namespace: "shop",
    type: "LoadBalancer",
    clusterIPs: ["10.96.0.10"],
    externalTrafficPolicy: "Local",
    ports: [{ name: "http", port: 80, nodePort: 30_080 }],
    ingress: [{ ip: "203.0.113.9" }],
  }),
  endpointSlice("web-1", {
    namespace: "shop",
    service: "web",
    family: "IPv4",
    ports: [{ name: "http", port: 8080 }],
    endpoints: [
      { address: "10.144.1.5", nodeName: "node-a" },
      { address: "10.144.2.6", nodeName: "node-b" },
      { address: "10.144.2.7", nodeName: "node-b", ready: false },
      { address: "10.144.2.8", nodeName: "node-b", ready: false, serving: true, terminating: true },
    ],
  }),
  service("no-endpoint", { clusterIPs: ["10.96.0.12"], ports: [{ port: 80 }] }),
  service("nginx-ovn", { clusterIPs: ["10.96.95.98"], ports: [{ port: 80 }] }),
  endpointSlice("nginx-ovn-1", {
    service: "nginx-ovn",
    family: "IPv4",
    ports: [{ port: 80 }],
    endpoints: [{ address: "10.244.0.5", nodeName: "node-b" }],
  }),
  service("both", { clusterIPs: ["10.96.0.13"], ports: [{ port: 80 }] }),
  endpointSlice("both-1", {
    service: "both",
    family: "IPv4",
    ports: [{ port: 80 }],
    endpoints: [
      { address: "10.144.1.7", nodeName: "node-a" },
      { address: "10.244.0.6", nodeName: "node-b" },
    ],
  }),
  service("stray", { clusterIPs: ["10.96.0.14"], ports: [{ port: 80 }] }),
  endpointSlice("stray-1", {
    service: "stray",
    family: "IPv4",
    ports: [{ port: 80 }],
    endpoints: [{ address: "10.88.0.6", nodeName: "node-b" }],
  }),
];

/** As many services as it says, with two endpoints each. */
export function manyServices(count: number): readonly RawObject[] {
  return Array.from({ length: count }, (_, at) => {
    const name = `service-${String(at).padStart(5, "0")}`;
    const [high, low] = [at >> 8, at & 255];
    return [
      service(name, { namespace: "many", clusterIPs: [`10.97.${high}.${low}`], ports: [{ port: 80 }] }),
      endpointSlice(`${name}-1`, {
        namespace: "many",
        service: name,
        family: "IPv4",
        ports: [{ port: 8080 }],
        endpoints: [
          { address: `10.144.${high}.${low}`, nodeName: "node-a" },
          { address: `10.145.${high}.${low}`, nodeName: "node-b" },
        ],
      }),
    ];
  }).flat();
}

/** Objects in memory that a test changes while they are followed, by as many as like. */
export class LiveObjects implements ObjectSource {
  readonly #objects = new Map<string, RawObject>();
  readonly #states: Readonly<Record<string, OtherState>>;
  readonly #runs = new Set<ReadonlyMap<string, Subscription<unknown>>>();

  /** @param states of resources that cannot be read, by kind */
  constructor(objects: readonly RawObject[], states: Readonly<Record<string, OtherState>> = {}) {
    for (const object of objects) this.#objects.set(nameOf(object), object);
    this.#states = states;
  }

  async run<S, E, N, C>(subscriptions: Subscriptions<S, E, N, C>, signal: AbortSignal): Promise<void> {
    const { services, endpointSlices, serviceCIDRs, others = [] } = subscriptions;
    const to = new Map<string, Subscription<unknown>>();
    if (services !== undefined) to.set("Service", services as Subscription<unknown>);
    if (endpointSlices !== undefined) to.set("EndpointSlice", endpointSlices as Subscription<unknown>);
    if (serviceCIDRs !== undefined) to.set("ServiceCIDR", serviceCIDRs as Subscription<unknown>);
    for (const other of others) if (!this.#cannotRead(other)) to.set(other.resource.kind, selecting(other));
    this.#runs.add(to);
    for (const object of this.#objects.values()) await give(to, object);
    for (const one of to.values()) await one.onChange({ type: "synced" });
    if (!signal.aborted) await new Promise((resolve) => signal.addEventListener("abort", resolve));
    this.#runs.delete(to);
  }

  async put(object: RawObject): Promise<void> {
    this.#objects.set(nameOf(object), object);
    for (const to of this.#runs) await give(to, object);
  }

  async remove(object: RawObject): Promise<void> {
    this.#objects.delete(nameOf(object));
    for (const to of this.#runs) await to.get(object.kind)?.onChange({ type: "delete", key: objectKey(object) });
  }

  #cannotRead({ resource, onState }: OtherSubscription): boolean {
    const state = this.#states[resource.kind];
    if (state !== undefined) onState(state);
    return state !== undefined;
  }
}

async function give(to: ReadonlyMap<string, Subscription<unknown>>, object: RawObject): Promise<void> {
  const one = to.get(object.kind);
  const decoded = one?.decode(object);
  if (decoded !== undefined) await one?.onChange({ type: "upsert", key: objectKey(object), object: decoded });
}

function nameOf(object: RawObject): string {
  return `${object.kind} ${objectKey(object)}`;
}

function objectKey({ metadata }: Pick<RawObject, "metadata">): ObjectKey {
  return `${metadata.namespace ?? ""}/${metadata.name}`;
}

/** One object of a resource may be all that is wanted. */
function selecting(other: OtherSubscription): OtherSubscription {
  const { only } = other.resource;
  if (only === undefined) return other;
  const wanted = objectKey({ metadata: only });
  return { ...other, decode: (raw) => (objectKey(raw as RawObject) === wanted ? other.decode(raw) : undefined) };
}

export interface SentEvent {
  readonly id?: number;
  readonly name: string;
  readonly data: Record<string, unknown>;
}

export class Events implements AsyncDisposable {
  readonly #events: FollowedStream<SentEvent>;
  #given = 0;

  constructor(response: IncomingMessage) {
    this.#events = follow(testSignal(), (stop) => {
      stop.addEventListener("abort", () => response.destroy(), { once: true });
      return eventsIn(response);
    });
  }

  static open(base: string, headers: Record<string, string>): Promise<Events> {
    return new Promise((resolve, reject) => {
      get(`${base}events`, { headers, agent: false }, (response) => resolve(new Events(response))).on("error", reject);
    });
  }

  /** The next events, up to and with the one that is asked for. */
  async until(wanted: (event: SentEvent) => boolean): Promise<readonly SentEvent[]> {
    const next = await this.#events.until((all) => {
      const left = all.slice(this.#given);
      const at = left.findIndex(wanted);
      return at >= 0 && left.slice(0, at + 1);
    }, String(wanted));
    this.#given += next.length;
    return next;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#events[Symbol.asyncDispose]();
  }
}

async function* eventsIn(response: IncomingMessage): AsyncGenerator<SentEvent, void, void> {
  let text = "";
  for await (const piece of response.setEncoding("utf8")) {
    text += piece;
    const blocks = text.split("\n\n");
    text = blocks.pop() ?? "";
    yield* blocks.map(eventIn);
  }
}

function eventIn(block: string): SentEvent {
  const field = (name: string) => new RegExp(`^${name}: (.*)$`, "m").exec(block)?.[1];
  const id = field("id");
  return {
    ...(id !== undefined && { id: Number(id) }),
    name: field("event") ?? "",
    data: JSON.parse(field("data") ?? ""),
  };
}
