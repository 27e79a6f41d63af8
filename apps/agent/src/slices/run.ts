import { randomUUID } from "node:crypto";
import { hostname } from "node:os";
import { errorChainText, systemClock } from "@fairlead/base";
import type { SlicesConfig } from "@fairlead/config";
import { NodeEvents } from "@fairlead/intake";
import { type ApiConnection, createApiSource, loadConnection, requestObject } from "@fairlead/watch";
import { version } from "../about/version.ts";
import { bind } from "../http/bind.ts";
import { ConnectionLimit } from "../http/connection-limit.ts";
import type { Log } from "../log/log.ts";
import { logSource } from "../objects/source-log.ts";
import { keepHeapSmall } from "../start/engine.ts";
import { StartError } from "../start/start-error.ts";
import { leasePort, type Send, sliceWriter } from "./api.ts";
import { slicesApp } from "./app.ts";
import { SliceController } from "./controller.ts";
import { type LeadParts, leading } from "./lead.ts";
import { Lists } from "./lists.ts";
import { slicesMetrics } from "./metrics.ts";
import { ProblemEvents } from "./problem-events.ts";
import { SliceState } from "./slice-state.ts";
import { slicesSubscriptions } from "./subscriptions.ts";

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
