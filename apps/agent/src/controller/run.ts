/** The process of fairlead-controller: its lists and watches, its leadership, its pages. */

import { randomUUID } from "node:crypto";
import { hostname } from "node:os";
import { type Clock, errorChainText, systemClock } from "@fairlead/base";
import type { ControllerConfig } from "@fairlead/config";
import type { ServiceCIDR } from "@fairlead/core";
import { NodeEvents } from "@fairlead/intake";
import {
  type ApiConnection,
  createApiSource,
  loadConnection,
  type OtherState,
  requestObject,
  type Subscriptions,
} from "@fairlead/watch";
import { version } from "../about/version.ts";
import { type App, PLAIN_TEXT, routes } from "../http/app.ts";
import { bind, ConnectionLimit } from "../http/listen.ts";
import type { Log } from "../log.ts";
import { addProcessMetrics, metricFactory } from "../metrics/registry.ts";
import { logSource } from "../problems.ts";
import { keepHeapSmall } from "../start/engine.ts";
import { StartError } from "../start/process.ts";
import { followFiles, kubeconfigOf } from "../watched-files.ts";
import { type LeadParts, leading } from "./election.ts";
import { GATEWAY_RESOURCES, GatewayJob } from "./gateways/job.ts";
import { NETWORK_RESOURCES, NetworkJob } from "./networks/job.ts";
import { leasePort, type Send } from "./requests.ts";

const COMPONENT = "fairlead-controller";
const USER_AGENT = `${COMPONENT}/${version}`;

/**
 * Follows the cluster and, while it leads, writes what is planned; until the signal aborts.
 *
 * @throws StartError when no API server is known
 * @throws Error its kubeconfig changed
 */
export async function runController(config: ControllerConfig, log: Log, asked: AbortSignal): Promise<void> {
  const { connection, kubeconfig } = await connect(config, log);
  const changed = new AbortController();
  const stop = AbortSignal.any([asked, changed.signal]);
  followFiles({ kubeconfig }, { clock: systemClock, log }, stop, (reason) => changed.abort(new Error(reason)));
  await follow(config, connection, log, stop);
  changed.signal.throwIfAborted();
}

async function follow(config: ControllerConfig, connection: ApiConnection, log: Log, stop: AbortSignal): Promise<void> {
  const send: Send = (request) => requestObject(connection, request, USER_AGENT);
  const lists = new Lists(log);
  const metrics = controllerMetrics();
  const parts = { send: metrics.counting(send), clock: systemClock, log, events: nodeEvents(send, log), lists };
  const jobs = [
    ...(config.jobs.includes("networks") ? [networkJob(config, parts, metrics)] : []),
    ...(config.jobs.includes("gateways") ? [gatewayJob(parts)] : []),
  ];
  serve(config, log, stop, controllerApp({ metrics, ready: () => lists.ready }));
  const following = Promise.all(jobs.map(({ subscriptions }) => source(connection, log).run(subscriptions, stop)));
  log.info("fairlead-controller started", { version, server: connection.server, jobs: config.jobs.join(",") });
  await Promise.race([lists.complete, following]);
  keepHeapSmall();
  const lead = leading(
    leadParts(config, send, log, metrics),
    async ({ signal, holds }) => {
      await Promise.all(jobs.map((job) => job.lead(signal, holds)));
    },
    stop,
  );
  await Promise.all([lead, following]);
}

interface JobParts {
  readonly send: Send;
  readonly clock: Clock;
  readonly log: Log;
  readonly events: NodeEvents;
  readonly lists: Lists;
}

/** One that is switched on by `--jobs`. No resource is followed twice by the same source: each has its own. */
interface Job {
  readonly subscriptions: Subscriptions<never, never, never, ServiceCIDR>;
  lead(signal: AbortSignal, mayWrite: () => boolean): Promise<void>;
}

function networkJob(config: ControllerConfig, { lists, ...parts }: JobParts, metrics: ControllerMetrics): Job {
  const { serviceProxyName, maxEndpointsPerSlice } = config;
  const job = new NetworkJob({ ...parts, serviceProxyName, maxEndpointsPerSlice, ...lists.of(NETWORK_RESOURCES) });
  metrics.problemsOf(() => job.problems);
  return job;
}

function gatewayJob({ lists, log, events, ...parts }: JobParts): Job {
  const job = new GatewayJob({
    ...parts,
    ...lists.of(GATEWAY_RESOURCES),
    onProblem: (about, reason, message) => {
      const { kind, namespace, name } = about;
      log.warn("Problem with an object of the Gateway API; its status says what", {
        object: `${kind} ${namespace}/${name}`,
        reason,
        message,
      });
      void events.report({ type: "Warning", reason, message, service: about });
    },
    onError: (object, error, retryMs) =>
      log.warn("Failed to write what a Gateway needs; retrying", { object, retryMs, error: errorChainText(error) }),
  });
  return { subscriptions: { others: job.subscriptions }, lead: (signal, mayWrite) => job.lead(signal, mayWrite) };
}

async function connect({ client }: ControllerConfig, log: Log) {
  try {
    const kubeconfig = await kubeconfigOf(client);
    return { kubeconfig, connection: await loadConnection({ ...client, onWarning: (text) => log.warn(text) }) };
  } catch (error) {
    throw new StartError(errorChainText(error), { cause: error });
  }
}

function source(connection: ApiConnection, log: Log) {
  // It may well be asked by its Service's address: what serves that does not wait for this program.
  const onReport = logSource({ log, keeps: "EndpointSlices", serviceAddress: () => undefined });
  // No resource of one node is subscribed.
  return createApiSource({ connection, nodeName: "", userAgent: USER_AGENT, onReport });
}

function nodeEvents(send: Send, log: Log): NodeEvents {
  const post = async (namespace: string, object: unknown) =>
    (await send({ method: "POST", path: `/api/v1/namespaces/${namespace}/events`, object })).status;
  return new NodeEvents({ node: hostname(), component: COMPONENT, post, clock: systemClock, log });
}

function leadParts(
  { election }: ControllerConfig,
  send: Send,
  log: Log,
  { leader }: Pick<ReturnType<typeof controllerMetrics>, "leader">,
): LeadParts {
  const onLeader = (leads: boolean) => leader.set(leads ? 1 : 0);
  const common = { clock: systemClock, random: Math.random, log, onLeader };
  if (election === undefined) return common;
  const { namespace, name, times } = election;
  const identity = `${hostname()}_${randomUUID()}`;
  return { ...common, election: { lease: leasePort(send, namespace, name), identity, times } };
}

function serve(
  { metricsBindAddress: at }: ControllerConfig,
  log: Log,
  signal: AbortSignal,
  app: ReturnType<typeof controllerApp>,
) {
  const options = { name: "metrics", at, hardFail: false, clock: systemClock, log, signal } as const;
  const opened = bind(app, { ...options, limit: new ConnectionLimit(), onFailure: () => {} });
  signal.addEventListener("abort", () => void opened.then((listener) => listener?.close()));
}

type ControllerMetrics = ReturnType<typeof controllerMetrics>;

interface ControllerAppSources {
  readonly metrics: Pick<ControllerMetrics, "text">;
  /** All lists that are needed are in. A replica that waits for the lease is ready as well. */
  readonly ready: () => boolean;
}

/** What the port of fairlead-controller answers. */
function controllerApp({ metrics, ready }: ControllerAppSources): App {
  const ok = { status: 200, headers: PLAIN_TEXT, body: "ok" };
  return routes({
    "/healthz": () => ok,
    "/livez": () => ok,
    "/readyz": () => (ready() ? ok : { status: 503, headers: PLAIN_TEXT, body: "waiting for the first lists\n" }),
    "/metrics": async () => {
      const { text, contentType } = await metrics.text();
      return { status: 200, headers: { "Content-Type": contentType, "X-Content-Type-Options": "nosniff" }, body: text };
    },
  });
}

const VERBS: ReadonlyMap<string, string> = new Map([
  ["POST", "create"],
  ["PUT", "update"],
  ["DELETE", "delete"],
]);

/** What `/metrics` of fairlead-controller has, in addition to the process's own. */
function controllerMetrics() {
  const make = metricFactory();
  addProcessMetrics(make.registry);
  const leader = make.gauge(
    "fairlead_controller_leader",
    "1 while this process holds the lease and writes, otherwise 0",
  );
  leader.set(0);
  const writes = make.counter("fairlead_controller_writes_total", "Writes of objects by resource, verb and result", [
    "resource",
    "verb",
    "result",
  ] as const);
  const counted = make.gauge(
    "fairlead_controller_problems",
    "Services on a secondary network with a problem, by its reason",
    ["reason"] as const,
  );
  let problems: () => ReadonlyMap<string, number> = () => new Map();
  return {
    leader,
    problemsOf(counts: typeof problems) {
      problems = counts;
    },
    /** The same requests; those that write are counted. */
    counting: (send: Send): Send => {
      return async (request) => {
        const verb = VERBS.get(request.method);
        const [, resource = ""] = /\/v1(?:\/namespaces\/[^/]+)?\/([^/]+)/.exec(request.path) ?? [];
        const count = (result: "success" | "error") => verb !== undefined && writes.inc({ resource, verb, result });
        const answer = await send(request).catch((error: unknown) => {
          count("error");
          throw error;
        });
        // What is gone already is deleted.
        count(answer.status < 300 || answer.status === 404 ? "success" : "error");
        return answer;
      };
    },
    async text() {
      counted.reset();
      for (const [reason, services] of problems()) counted.set({ reason }, services);
      return { text: await make.registry.metrics(), contentType: make.registry.contentType };
    },
  };
}

/** The first complete lists, without which nothing is written. */
class Lists {
  readonly #missing = new Set<string>();
  readonly #states = new Map<string, OtherState>();
  readonly #log: Log;
  readonly #complete = Promise.withResolvers<void>();

  constructor(log: Log) {
    this.#log = log;
  }

  get ready(): boolean {
    return this.#missing.size === 0;
  }

  /** Resolves when all are in. */
  get complete(): Promise<void> {
    return this.#complete.promise;
  }

  of(needed: readonly string[]) {
    for (const resource of needed) this.#missing.add(resource);
    return {
      onSynced: (resource: string) => {
        this.#missing.delete(resource);
        if (this.ready) this.#complete.resolve();
      },
      onState: (resource: string, state: OtherState) => this.#state(resource, state),
    };
  }

  /** Says once what the role does not allow. An API server that cannot be reached is reported by the source. */
  #state(resource: string, state: OtherState): void {
    if (this.#states.get(resource) === state) return;
    this.#states.set(resource, state);
    if (state === "forbidden") {
      this.#log.error("The role does not allow reading a resource; what is written stays as it is, retrying", {
        resource,
      });
    } else if (resource === "networks" && state === "absent") {
      this.#log.info("No NetworkAttachmentDefinitions in this cluster; a missing network is not reported");
    } else if (state === "absent") {
      this.#log.warn("The cluster has no such resource; it counts as an empty list, asking again", { resource });
    }
  }
}
