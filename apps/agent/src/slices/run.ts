/** The process of fairlead-slices: its lists and watches, its leadership, its pages. */

import { randomUUID } from "node:crypto";
import { hostname } from "node:os";
import { errorChainText, objectAt, systemClock, textAt } from "@fairlead/base";
import type { SlicesConfig } from "@fairlead/config";
import { NodeEvents } from "@fairlead/intake";
import { type ApiConnection, createApiSource, loadConnection, type OtherState, requestObject } from "@fairlead/watch";
import { version } from "../about/version.ts";
import { type App, PLAIN_TEXT, routes } from "../http/app.ts";
import { bind, ConnectionLimit } from "../http/listen.ts";
import type { Log } from "../log.ts";
import { addProcessMetrics, metricFactory } from "../metrics/registry.ts";
import { logSource } from "../problems.ts";
import { keepHeapSmall } from "../start/engine.ts";
import { StartError } from "../start/process.ts";
import { leasePort, type Needed, type Send, slicesSubscriptions, sliceWriter } from "./api.ts";
import { SliceController, type SliceWriter } from "./controller.ts";
import type { Key, SliceProblem } from "./decode.ts";
import { type LeadParts, leading } from "./election.ts";
import { SliceState } from "./slice-state.ts";

const COMPONENT = "fairlead-slices";
const USER_AGENT = `${COMPONENT}/${version}`;

/**
 * Follows the cluster and, while it leads, writes what is planned; until the signal aborts.
 *
 * @throws StartError when no API server is known
 */
export async function runSlices(config: SlicesConfig, log: Log, stop: AbortSignal): Promise<void> {
  const connection = await connect(config, log);
  const send: Send = (request) => requestObject(connection, request, USER_AGENT);
  const [state, lists] = [new SliceState(), new Lists(log)];
  const problems = problemEvents(send, log);
  const metrics = slicesMetrics(() => problems.counts);
  serve(config, log, stop, slicesApp({ metrics, ready: () => lists.ready }));
  let changed = () => {};
  const subscriptions = slicesSubscriptions({
    state,
    serviceProxyName: config.serviceProxyName,
    onChange: () => changed(),
    onService: (key, raw) => problems.setService(key, raw),
    onSynced: (resource) => lists.synced(resource),
    onState: (resource, is) => lists.state(resource, is),
  });
  const following = source(connection, log).run(subscriptions, stop);
  log.info("fairlead-slices started", { version, server: connection.server });
  await Promise.race([lists.complete, following]);
  keepHeapSmall();
  const lead = leading(
    leadParts(config, send, log, metrics),
    async ({ signal, holds }) => {
      const controller = new SliceController({
        state,
        writer: metrics.counting(sliceWriter(send)),
        clock: systemClock,
        most: config.maxEndpointsPerSlice,
        mayWrite: holds,
        onProblems: (key, of) => problems.report(key, of),
        onError: (service, error, retryMs) =>
          log.warn("Failed to write EndpointSlices; retrying", { service, retryMs, error: errorChainText(error) }),
      });
      changed = () => controller.changed();
      state.allAgain();
      await controller.run(signal);
    },
    stop,
  );
  await Promise.all([lead, following]);
}

async function connect({ client }: SlicesConfig, log: Log): Promise<ApiConnection> {
  try {
    return await loadConnection({ ...client, onWarning: (text) => log.warn(text) });
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

function problemEvents(send: Send, log: Log): ProblemEvents {
  const post = async (namespace: string, object: unknown) =>
    (await send({ method: "POST", path: `/api/v1/namespaces/${namespace}/events`, object })).status;
  const events = new NodeEvents({ node: hostname(), component: COMPONENT, post, clock: systemClock, log });
  return new ProblemEvents({ events, log });
}

function leadParts(
  { election }: SlicesConfig,
  send: Send,
  log: Log,
  { leader }: Pick<ReturnType<typeof slicesMetrics>, "leader">,
): LeadParts {
  const onLeader = (leads: boolean) => leader.set(leads ? 1 : 0);
  const common = { clock: systemClock, random: Math.random, log, onLeader };
  if (election === undefined) return common;
  const { namespace, name, times } = election;
  const identity = `${hostname()}_${randomUUID()}`;
  return { ...common, election: { lease: leasePort(send, namespace, name), identity, times } };
}

function serve(
  { metricsBindAddress: at }: SlicesConfig,
  log: Log,
  signal: AbortSignal,
  app: ReturnType<typeof slicesApp>,
) {
  const options = { name: "metrics", at, hardFail: false, clock: systemClock, log, signal } as const;
  const opened = bind(app, { ...options, limit: new ConnectionLimit(), onFailure: () => {} });
  signal.addEventListener("abort", () => void opened.then((listener) => listener?.close()));
}

type SlicesMetrics = ReturnType<typeof slicesMetrics>;

interface SlicesAppSources {
  readonly metrics: Pick<SlicesMetrics, "text">;
  /** All lists that are needed are in. A replica that waits for the lease is ready as well. */
  readonly ready: () => boolean;
}

/** What the port of fairlead-slices answers. */
function slicesApp({ metrics, ready }: SlicesAppSources): App {
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

/** What `/metrics` of fairlead-slices has, in addition to the process's own. */
function slicesMetrics(problems: () => ReadonlyMap<string, number>) {
  const make = metricFactory();
  addProcessMetrics(make.registry);
  const leader = make.gauge("fairlead_slices_leader", "1 while this process holds the lease and writes, otherwise 0");
  leader.set(0);
  const writes = make.counter("fairlead_slices_writes_total", "Writes of EndpointSlices by verb and result", [
    "verb",
    "result",
  ] as const);
  const counted = make.gauge("fairlead_slices_problems", "Services with a problem, by its reason", ["reason"] as const);
  const count = async <T>(verb: string, write: Promise<T>): Promise<T> => {
    try {
      const answer = await write;
      writes.inc({ verb, result: "success" });
      return answer;
    } catch (error) {
      writes.inc({ verb, result: "error" });
      throw error;
    }
  };
  return {
    leader,
    /** The same writes, counted. */
    counting: (writer: SliceWriter): SliceWriter => ({
      create: (object) => count("create", writer.create(object)),
      update: (object) => count("update", writer.update(object)),
      remove: (slice) => count("delete", writer.remove(slice)),
    }),
    async text() {
      counted.reset();
      for (const [reason, services] of problems()) counted.set({ reason }, services);
      return { text: await make.registry.metrics(), contentType: make.registry.contentType };
    },
  };
}

const NEEDED: readonly Needed[] = ["services", "pods", "nodes", "endpointSlices", "serviceCIDRs"];

/** The first complete lists, without which nothing is written. */
class Lists {
  readonly #missing = new Set<Needed>(NEEDED);
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

  synced(resource: Needed): void {
    this.#missing.delete(resource);
    if (this.ready) this.#complete.resolve();
  }

  /** Says once what the role does not allow. An API server that cannot be reached is reported by the source. */
  state(resource: Needed | "networks", state: OtherState): void {
    if (this.#states.get(resource) === state) return;
    this.#states.set(resource, state);
    if (state === "forbidden") {
      this.#log.error("The role does not allow reading a resource; EndpointSlices stay as they are, retrying", {
        resource,
      });
    } else if (resource === "networks" && state === "absent") {
      this.#log.info("No NetworkAttachmentDefinitions in this cluster; a missing network is not reported");
    }
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
