/** The API server as a source of objects: one reflector for each subscribed resource, over one connection. */

import { type Clock, systemClock } from "@fairlead/base";
import type { ObjectSource } from "../change.ts";
import { publishersOf, runTogether } from "../publisher.ts";
import type { OnReport } from "../report.ts";
import { resourceSpecs, type Selection } from "../resources.ts";
import {
  type ApiConnection,
  httpTransport,
  observedTokens,
  observedTransport,
  type RequestObserver,
  type Transport,
  tokenBucket,
} from "./http.ts";
import { type ReflectorPorts, RetryDelays } from "./recovery.ts";
import { Reflector } from "./reflector.ts";
import { pulse, reachability, Turns } from "./request.ts";

/** Which objects a source follows, and how. */
export interface ApiSourceOptions extends Selection {
  /** The API server; `loadConnection` makes it. */
  readonly connection: ApiConnection;
  /** For example `fairlead-proxy/1.2.3`. */
  readonly userAgent: string;
  /** clientConnection.qps: requests a second in the long run; pages of a list are not counted. Default 5. */
  readonly qps?: number;
  /** clientConnection.burst: requests at once. Default 10. */
  readonly burst?: number;
  /** Whether lists come by a watch, from servers that can do it (KEP-3157). Default true. */
  readonly watchList?: boolean;
  /**
   * Whether objects are asked for as protobuf, with JSON as the server's other choice; `decode` is then given what a
   * service proxy reads of an object and nothing else. Default false.
   */
  readonly protobuf?: boolean;
  /** Gets what an operator may want to read; default: it goes nowhere. */
  readonly onReport?: OnReport;
  /** Gets each request; default: none. */
  readonly onRequest?: RequestObserver;
  /** For tests: virtual time, 0 ≤ random() < 1, and requests that don't leave the process. */
  readonly clock?: Clock;
  /** For the jitter of retries; default: Math.random. */
  readonly random?: () => number;
  /** Carries requests; default: Node's own client. */
  readonly transport?: Transport;
}

/** Follows the API server: list, then watch, for as long as it runs. Does nothing before `run`. */
export function createApiSource(options: ApiSourceOptions): ObjectSource {
  return {
    run: async (subscriptions, signal) => {
      const ports = portsOf(options);
      const publishers = publishersOf(subscriptions, ports.onReport);
      const parts = resourceSpecs(options, subscriptions.others).flatMap((spec) => {
        const to = publishers.get(spec.name);
        return to === undefined ? [] : [(stop: AbortSignal) => new Reflector(ports, spec, to).run(stop)];
      });
      try {
        await runTogether(parts, signal);
      } finally {
        ports.reachability.stop();
      }
    },
  };
}

function portsOf(options: ApiSourceOptions): ReflectorPorts {
  const { connection, userAgent, qps = 5, burst = 10, clock = systemClock, random = Math.random } = options;
  const onReport = options.onReport ?? (() => {});
  const sent = options.transport ?? httpTransport(connection, userAgent, clock);
  const { onRequest: observer } = options;
  const observing = observer && { observer, host: new URL(connection.server).host, clock };
  const transport = observing === undefined ? sent : observedTransport(sent, observing);
  const tokens = tokenBucket(clock, qps, burst);
  return {
    requester: { transport, clock, pulse: pulse(sent, clock) },
    takeToken: observing === undefined ? tokens : observedTokens(tokens, observing),
    clock,
    random,
    reachability: reachability(clock, connection.server, onReport),
    turns: new Turns(),
    turnDelays: new RetryDelays(clock, random),
    onReport,
    firstMode: options.watchList === false ? "list" : "watchList",
    protobuf: options.protobuf ?? false,
  };
}
