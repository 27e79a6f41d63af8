/** Objects of the Gateway API, and a cluster that keeps them, with as much of an API server as a job's writes need. */

import { GATEWAY_CONTROLLER, GATEWAY_GROUP, isObject, objectAt, type RawObject, textAt } from "@fairlead/base";
import { GATEWAYS_MANAGER } from "../../src/controller/gateways/objects.ts";
import { type Followed, GatewayState, type Work } from "../../src/controller/gateways/state.ts";
import { PLURALS, reconcile, type Subject } from "../../src/controller/gateways/writes.ts";
import type { Key, Send } from "../../src/controller/requests.ts";

export const NOW = "2026-11-27T12:00:00Z";

export const COLLECTIONS: Readonly<Record<Followed, string>> = {
  GatewayClass: `/apis/${GATEWAY_GROUP}/v1/gatewayclasses`,
  Gateway: `/apis/${GATEWAY_GROUP}/v1/gateways`,
  TCPRoute: `/apis/${GATEWAY_GROUP}/v1/tcproutes`,
  UDPRoute: `/apis/${GATEWAY_GROUP}/v1/udproutes`,
  ReferenceGrant: `/apis/${GATEWAY_GROUP}/v1/referencegrants`,
  Namespace: "/api/v1/namespaces",
  Service: "/api/v1/services",
  EndpointSlice: "/apis/discovery.k8s.io/v1/endpointslices",
};

export interface Made {
  readonly kind: Followed;
  readonly key: Key;
  readonly raw: RawObject;
}

type Fields = Readonly<Record<string, unknown>>;

function made(kind: Followed, namespace: string, name: string, metadata: Fields, rest: Fields): Made {
  const common = {
    ...(namespace !== "" && { namespace }),
    name,
    uid: `uid-${kind}-${namespace}-${name}`,
    generation: 1,
  };
  return { kind, key: `${namespace}/${name}`, raw: { metadata: { ...common, ...metadata }, ...rest } };
}

export function gatewayClass(
  name = "fairlead",
  controllerName = GATEWAY_CONTROLLER,
  more: Fields = {},
  metadata: Fields = {},
) {
  return made("GatewayClass", "", name, metadata, { spec: { controllerName, ...more } });
}

export function listener(name: string, port: number, protocol = "TCP", allowedRoutes?: Fields): RawObject {
  return { name, port, protocol, ...(allowedRoutes && { allowedRoutes }) };
}

export function gateway(name: string, listeners: readonly RawObject[], more: Fields = {}, metadata: Fields = {}) {
  return made("Gateway", "apps", name, metadata, { spec: { gatewayClassName: "fairlead", listeners, ...more } });
}

export interface RouteFields {
  readonly kind?: "TCPRoute" | "UDPRoute";
  readonly namespace?: string;
  readonly created?: string;
  readonly parents?: readonly RawObject[];
  readonly backends?: readonly RawObject[];
  readonly status?: Fields;
}

export function route(name: string, fields: RouteFields = {}): Made {
  const { kind = "TCPRoute", namespace = "apps", created = "2026-01-01T00:00:00Z", status } = fields;
  const { parents = [{ name: "gw" }], backends = [{ name: "web", port: 80 }] } = fields;
  const spec = { parentRefs: parents, rules: [{ backendRefs: backends }] };
  return made(kind, namespace, name, { creationTimestamp: created }, { spec, ...(status && { status }) });
}

export function grant(namespace: string, from: Fields, name?: string): Made {
  const to = { group: "", kind: "Service", ...(name !== undefined && { name }) };
  return made(
    "ReferenceGrant",
    namespace,
    "grant",
    {},
    {
      spec: { from: [{ group: GATEWAY_GROUP, kind: "TCPRoute", ...from }], to: [to] },
    },
  );
}

export function namespace(name: string, labels: Readonly<Record<string, string>> = {}): Made {
  return made("Namespace", "", name, { labels }, {});
}

export function backend(name: string, spec: Fields = {}, of = "apps"): Made {
  const ports = [{ name: "tcp", port: 80, protocol: "TCP", targetPort: "http" }];
  return made("Service", of, name, {}, { spec: { type: "ClusterIP", ports, ...spec } });
}

export interface SliceFields {
  readonly namespace?: string;
  readonly family?: "IPv4" | "IPv6";
  readonly ports?: readonly RawObject[];
  readonly labels?: Readonly<Record<string, string>>;
}

/** A slice of a Service as Kubernetes' own controller writes it. @param addresses those with `!` are not ready */
export function slice(
  service: string,
  addresses: readonly string[],
  name = `${service}-1`,
  fields: SliceFields = {},
): Made {
  const { namespace: of = "apps", family = "IPv4", labels = {} } = fields;
  const { ports = [{ name: "tcp", port: 8080, protocol: "TCP" }] } = fields;
  const endpoints = addresses.map((text) => ({
    addresses: [text.replace("!", "")],
    conditions: { ready: !text.endsWith("!"), serving: !text.endsWith("!"), terminating: false },
    nodeName: "node-a",
    zone: "z1",
    hints: { forZones: [{ name: "z1" }] },
    targetRef: { kind: "Pod", namespace: of, name: `pod-${text}`, uid: `uid-${text}` },
  }));
  const own = {
    "kubernetes.io/service-name": service,
    "endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io",
  };
  return made("EndpointSlice", of, name, { labels: { ...own, ...labels } }, { addressType: family, ports, endpoints });
}

/** The cluster's objects, what is written to them, and what the job's state knows of them. */
export class GatewayCluster {
  readonly state = new GatewayState();
  readonly objects = new Map<string, RawObject>();
  /** Method and path of each write. */
  readonly writes: string[] = [];
  /** What has been reconciled, in order. */
  readonly reconciled: Work[] = [];
  readonly problems: string[] = [];
  /** Answers in place of the server; undefined: the server does. */
  refuse: (method: string, path: string) => { status: number; body: string } | undefined = () => undefined;
  /** Whether the watch is behind: changes wait in it. */
  lags = false;
  readonly #waiting: (() => void)[] = [];
  readonly #writing: Parameters<typeof reconcile>[1] = {
    state: this.state,
    send: (request) => this.#answer(request),
    now: () => Date.parse(NOW),
    onProblem: ({ kind, namespace: of, name }: Subject, reason, message) =>
      this.problems.push(`${kind} ${of}/${name}: ${reason}: ${message}`),
  };
  #version = 0;

  constructor(...objects: readonly Made[]) {
    this.put(...objects);
  }

  put(...objects: readonly Made[]): void {
    for (const { kind, key, raw } of objects) {
      const status = raw["status"] ?? this.objects.get(`${kind} ${key}`)?.["status"];
      this.#store(kind, key, { ...raw, ...(isObject(status) && { status }) });
    }
  }

  delete(kind: Followed, key: Key): void {
    this.objects.delete(`${kind} ${key}`);
    this.#report(kind, key, undefined);
  }

  get(kind: Followed, key: Key): RawObject | undefined {
    return this.objects.get(`${kind} ${key}`);
  }

  /** What the watch has to bring comes: so many changes of it. */
  catchUp(most = Number.POSITIVE_INFINITY): void {
    for (const come of this.#waiting.splice(0, most)) come();
  }

  /**
   * Reconciles all that is dirty, until nothing is. What fails while the watch is behind is tried again.
   *
   * @returns the writes that it took
   * @throws the first error of any other kind, at the end
   */
  async settle(): Promise<readonly string[]> {
    const before = this.writes.length;
    const errors: unknown[] = [];
    for (let round = 0; this.state.dirty.size > 0; round += 1) {
      if (round === 20) throw new Error(`no end: ${[...this.state.dirty]}`);
      for (const work of [...this.state.dirty]) {
        this.reconciled.push(work);
        await reconcile(work, this.#writing).catch((error: unknown) => {
          if (!this.lags) return void errors.push(error);
          this.state.again(work);
          this.catchUp();
        });
      }
    }
    if (errors.length > 0) throw errors[0];
    return this.writes.slice(before);
  }

  /** EndpointSlices that the job wrote, as `name port family weight: addresses`. */
  mirrored(): readonly string[] {
    return [...this.objects]
      .filter(([id, raw]) => id.startsWith("EndpointSlice ") && managerOf(raw) === GATEWAYS_MANAGER)
      .map(([, raw]) => {
        const annotations = objectAt(objectAt(raw, "metadata"), "annotations");
        const ports = (raw["ports"] as RawObject[]).map(({ name, port, protocol }) => `${name}>${port}/${protocol}`);
        const said = Object.entries(annotations).map(([key, value]) => ` ${key.replace("fairlead.dev/", "")}=${value}`);
        const addresses = (raw["endpoints"] as { addresses: string[] }[]).map((one) => one.addresses[0]);
        return `${ports.join()} ${raw["addressType"]}${said.join("")}: ${addresses.join(" ")}`.trim();
      })
      .sort();
  }

  #store(kind: Followed, key: Key, raw: RawObject): RawObject {
    this.#version += 1;
    const metadata = { ...objectAt(raw, "metadata"), resourceVersion: String(this.#version) };
    const stored = JSON.parse(JSON.stringify({ ...raw, metadata })) as RawObject;
    this.objects.set(`${kind} ${key}`, stored);
    this.#report(kind, key, stored);
    return stored;
  }

  #report(kind: Followed, key: Key, raw: RawObject | undefined): void {
    if (this.lags) this.#waiting.push(() => this.state.set(kind, key, raw));
    else this.state.set(kind, key, raw);
  }

  #answer: Send = async ({ method, path, object }) => {
    if (method !== "GET") this.writes.push(`${method} ${path.replace(/^\/apis?\/.*?v1\//, "")}`);
    const refused = this.refuse(method, path);
    if (refused !== undefined) return refused;
    const [, namespace = "", plural = "", name, status] =
      /v1(?:\/namespaces\/([^/]+))?\/([^/]+)(?:\/([^/]+))?(\/status)?$/.exec(path) ?? [];
    const kind = KIND_OF.get(plural);
    const body = isObject(object) ? object : {};
    const wanted = name ?? textAt(objectAt(body, "metadata"), "name");
    if (kind === undefined || wanted === undefined) return { status: 404, body: "" };
    const key: Key = `${namespace}/${wanted}`;
    const there = this.get(kind, key);
    if (method === "POST")
      return there === undefined ? this.#ok(kind, key, withUID(kind, key, body)) : { status: 409, body: "" };
    if (there === undefined) return { status: 404, body: "" };
    if (method === "GET") return { status: 200, body: JSON.stringify(there) };
    if (method === "DELETE") {
      this.delete(kind, key);
      return { status: 200, body: "{}" };
    }
    const versions = [body, there].map((one) => textAt(objectAt(one, "metadata"), "resourceVersion"));
    if (versions[0] !== versions[1]) return { status: 409, body: '{"message":"the object has been modified"}' };
    return this.#ok(
      kind,
      key,
      status === undefined ? { ...body, status: there["status"] } : { ...there, status: body["status"] },
    );
  };

  #ok(kind: Followed, key: Key, raw: RawObject) {
    return { status: 200, body: JSON.stringify(this.#store(kind, key, raw)) };
  }
}

const KIND_OF = new Map<string, Followed>([
  ...Object.entries(PLURALS).map(([kind, plural]) => [plural, kind as Followed] as const),
  ["services", "Service"],
  ["endpointslices", "EndpointSlice"],
]);

function managerOf(raw: RawObject): unknown {
  return objectAt(objectAt(raw, "metadata"), "labels")["endpointslice.kubernetes.io/managed-by"];
}

function withUID(kind: Followed, key: Key, body: RawObject): RawObject {
  return { ...body, metadata: { ...objectAt(body, "metadata"), uid: `uid-${kind}-${key.replace("/", "-")}` } };
}

/** Conditions by type: `True Accepted`. */
export function conditionsOf(holder: unknown): Readonly<Record<string, string>> {
  const conditions = (Object(holder)["conditions"] ?? []) as RawObject[];
  return Object.fromEntries(conditions.map(({ type, status, reason }) => [type, `${status} ${reason}`]));
}
