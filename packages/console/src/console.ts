import { type Clock, systemClock } from "@fairlead/base";
import { splitKey } from "@fairlead/core";
import { explainService, findTarget, parseTarget, whyIgnored } from "@fairlead/inspect";
import type { ObjectSource } from "@fairlead/watch";
import { RequestError } from "./guard.ts";
import { LiveCluster } from "./model/cluster.ts";
import { UnusableObjects } from "./model/follow.ts";
import { type Look, NodePoller, type NodePorts, SourceHealth } from "./model/nodes.ts";
import type { AgentSetup } from "./model/plans.ts";
import { networksOf, searchServices } from "./model/rows.ts";
import type { ConsoleFacts, NetworksAnswer, NodeRow, SearchAnswer, ServiceAnswer, StreamEvent } from "./protocol.ts";
import { type Answer, type RunningServer, serve } from "./server.ts";
import { Stream } from "./stream.ts";

export interface ConsoleOptions {
  /** The page, as `buildPage` makes it. */
  readonly html: string;
  /** Of 127.0.0.1; 0: any that is free. */
  readonly port: number;
  readonly version: string;
  /** Where the objects come from, in words. */
  readonly sourceName: string;
  readonly source: ObjectSource;
  /** Where objects that the source cannot read are reported; absent: none are reported. */
  readonly unusable?: UnusableObjects;
  /** What the source reports of itself; absent: it always answers. */
  readonly health?: SourceHealth;
  readonly setup: AgentSetup;
  /** The node to look from; undefined: the first by name. */
  readonly nodeName: string | undefined;
  /** Absent: no kernel can be looked at. */
  readonly looking?: ((cluster: LiveCluster) => NodePorts) | undefined;
  /** More answers, by path, made of the cluster. */
  readonly answers?: (cluster: LiveCluster) => Answers;
  /** Default the system's. */
  readonly clock?: Clock;
}

export interface Answers {
  readonly gets: Readonly<Record<string, Answer>>;
  readonly posts: Readonly<Record<string, Answer>>;
}

export interface RunningConsole extends RunningServer {
  /** Rejects when the objects cannot be followed anymore; resolves when the signal aborts. */
  readonly ended: Promise<void>;
}

/** Rows that are sent at once: more would keep other requests waiting. */
const PORTION = 500;

/** Follows the objects and serves the page until the signal aborts. */
export async function startConsole(options: ConsoleOptions, signal: AbortSignal): Promise<RunningConsole> {
  const now = () => Date.now();
  const { unusable = new UnusableObjects(now), health = new SourceHealth(now), clock = systemClock } = options;
  const publish = (event: StreamEvent) => stream.publish(event);
  const cluster = new LiveCluster({
    setup: options.setup,
    nodeName: options.nodeName,
    now,
    unusable,
    onServices: (rows, gone) => publish({ name: "services", data: { objectsAt: cluster.changedAt, rows, gone } }),
    onNodesForbidden: (are) => health.setNodesForbidden(are),
    onNode: (node, known) => {
      // The one that is looked from stays on the page, which says that it is gone.
      const isGone = known === undefined && node !== cluster.nodeName;
      const data = isGone ? { rows: [], gone: [node] } : { rows: [nodeRow(node)], gone: [] };
      publish({ name: "nodes", data });
    },
  });
  unusable.onChange = atOnce(() => publish({ name: "unusable", data: unusable.now() }));
  health.onChange = atOnce(() => publish({ name: "source", data: health.now() }));
  const ports = options.looking?.(cluster);
  const onLook = (node: string) => publish({ name: "nodes", data: { rows: [nodeRow(node)], gone: [] } });
  const looks = ports && new NodePoller({ ports, clock, now, onLook });
  const nodeRow = (node: string): NodeRow => {
    const { zone, addresses = [] } = cluster.nodes.get(node) ?? {};
    const deleted = node === cluster.nodeName && cluster.nodeDeleted;
    return {
      node,
      ...(zone !== undefined && { zone }),
      addresses,
      ...(deleted && { deleted }),
      ...looks?.of(node),
    };
  };
  const stream = new Stream({
    onGone: (page) => looks?.view(page, []),
    everything: async function* (page) {
      for await (const data of health.until(cluster.ready)) yield { name: "source", data };
      const facts: ConsoleFacts = {
        version: options.version,
        source: options.sourceName,
        node: cluster.nodeName,
        mode: cluster.setupOf(cluster.nodeName).mode,
        kernels: looks !== undefined,
      };
      const names = new Set([cluster.nodeName, ...cluster.nodes.keys()]);
      const nodes = [...names].sort().map(nodeRow);
      const objectsAt = cluster.changedAt;
      const services = [...cluster.state.keys()].length;
      const known = { unusable: unusable.now(), source: health.now() };
      yield { name: "begin", data: { stream: page, facts, nodes, services, objectsAt, ...known } };
      for await (const rows of cluster.rows(PORTION)) yield { name: "services", data: { objectsAt, rows, gone: [] } };
    },
  });
  const more = options.answers?.(cluster) ?? { gets: {}, posts: {} };
  const server = await serve({
    html: options.html,
    port: options.port,
    stream,
    gets: { ...clusterAnswers(cluster), ...more.gets },
    posts: { "/api/view": viewAnswer(stream, looks), ...more.posts },
  });
  const ended = cluster.follow(options.source, signal).finally(() => looks?.stop());
  return { ...server, ended };
}

/** What many changes in a row ask for is done once, behind them. */
function atOnce(work: () => void): () => void {
  let pending = false;
  return () => {
    if (pending) return;
    pending = true;
    setImmediate(() => {
      pending = false;
      work();
    });
  };
}

function clusterAnswers(cluster: LiveCluster): Readonly<Record<string, Answer>> {
  const nodeOf = (query: URLSearchParams) => query.get("node") ?? cluster.nodeName;
  return {
    "/api/search": async (query): Promise<SearchAnswer> => {
      await cluster.ready;
      return { services: searchServices(cluster.state, query.get("q") ?? "") };
    },
    "/api/service": async (query): Promise<ServiceAnswer> => {
      await cluster.ready;
      const text = query.get("target") ?? "";
      const target = targetOf(text);
      const answer = await cluster.withPlan(nodeOf(query), (planned): ServiceAnswer | undefined => {
        const [found] = findTarget(planned, target);
        const explanation = found && explainService(planned, found.service, found.port);
        if (explanation === undefined) return undefined;
        const learned = cluster.learning?.cidrs();
        const deciding = explanation.families.flatMap(({ ownership }) => ownership.decidingCIDRs);
        return {
          planAt: cluster.changedAt,
          explanation,
          learnedFrom: [...new Set(deciding)].flatMap((cidr) => learned?.get(cidr) ?? []),
          owners: cluster.ownersOf(explanation.service),
        };
      });
      if (answer !== undefined) return answer;
      throw new RequestError(404, `${text}: ${await whyNotThere(cluster, target)}`);
    },
    "/api/networks": async (query): Promise<NetworksAnswer> => {
      await cluster.ready;
      const networks = await cluster.withPlan(nodeOf(query), (planned) =>
        networksOf(planned, cluster.setupOf(planned.nodeName), cluster.learning?.now()),
      );
      return { planAt: cluster.changedAt, ...networks };
    },
  };
}

/** Milliseconds that the API server has to say why a Service is not among those that are followed. */
const WHY_WAIT = 15_000;

/** Headless, or left to a proxy of another name: those are not followed. */
async function whyNotThere(cluster: LiveCluster, target: ReturnType<typeof targetOf>): Promise<string> {
  const nothing = "there is no such service with a ClusterIP";
  if (target.kind !== "service") return nothing;
  const { serviceProxyName } = cluster.setupOf(cluster.nodeName).config;
  const asked = whyIgnored(cluster.source, splitKey(target.service), serviceProxyName, AbortSignal.timeout(WHY_WAIT));
  return (await asked.catch(() => undefined)) ?? nothing;
}

function targetOf(text: string) {
  try {
    return parseTarget(text);
  } catch (error) {
    throw error instanceof RangeError ? new RequestError(400, error.message) : error;
  }
}

/** Nodes that one page may have looked at at once. */
const MOST_NODES = 50;

function viewAnswer(stream: Stream, poller: NodePoller | undefined): Answer {
  return async (_query, body) => {
    const { page, nodes, traffic } = readView(body);
    const looks: readonly Look[] = traffic ? ["agent", "kernel", "traffic"] : ["agent", "kernel"];
    if (stream.has(page)) poller?.view(page, nodes.slice(0, MOST_NODES), looks);
    return {};
  };
}

function readView(body: unknown): {
  readonly page: string;
  readonly nodes: readonly string[];
  readonly traffic: boolean;
} {
  if (typeof body === "object" && body !== null && "stream" in body && "nodes" in body) {
    const { stream, nodes } = body;
    const traffic = "traffic" in body && body.traffic === true;
    if (typeof stream === "string" && Array.isArray(nodes) && nodes.every((one) => typeof one === "string")) {
      return { page: stream, nodes, traffic };
    }
  }
  throw new RequestError(400, "must be { stream: TEXT, nodes: [TEXT, …], traffic: true or false }");
}
