/** Which service a connection belongs to, and which connections are asked for. */

import { addressWords, errorText, inAnyOf } from "@fairlead/base";
import {
  type AttributeFlow,
  type Flow,
  type FlowSocket,
  findTarget,
  flowAttribution,
  type PlannedNode,
  type Relays,
  readRelays,
  type Target,
} from "@fairlead/inspect";
import { CommandError, type Connection, NetlinkError, openTracking, type Tracking } from "@fairlead/kernel";
import type { CONDITIONS, connectionOptions, filterOptions } from "../facts/nodes.ts";
import type { CommandInput, OptionValues } from "../frame/command.ts";
import type { Context } from "../frame/context.ts";
import { CommandFailure } from "../frame/errors.ts";
import { demandReadable } from "../inputs/agent.ts";
import { namespaceOf } from "../inputs/cluster-access.ts";
import { isIn, servicesLike, targetOf } from "../inputs/names.ts";
import { plannedNode } from "../inputs/planned.ts";
import { interfaceAddresses, runnerFor, stateOf } from "../node/access.ts";
import { askAgent } from "../node/agent-endpoint.ts";
import { podTracking } from "../node/connections.ts";

type Values = CommandInput<typeof connectionOptions>["options"];

export interface Attribution {
  readonly node: string;
  readonly tracking: Tracking;
  /** Undefined: the connection belongs to no service, or to one that was not asked for. */
  readonly flowOf: AttributeFlow;
  /** Whether what answers may be a relay of the node's agent: then `flowOf` has to know what that one relays. */
  readonly mayBeRelayed: (flow: Flow) => boolean;
  /** What the node's agent relays now; undefined: it does not say. */
  readonly relays: () => Promise<Relays | undefined>;
  /** Whether it is one that the options choose: asked once it is known what is relayed; absent: all are. */
  readonly fits?: (flow: Flow) => boolean;
}

export async function openAttribution(options: Values, context: Context): Promise<Attribution> {
  const { service: asked, on } = options;
  const target = asked === undefined ? undefined : targetOf(asked, await namespaceOf(options, context), "service");
  const runner = await runnerFor(options, context);
  const addresses = interfaceAddresses(await stateOf(options, context, ["addresses"]));
  const values = { ...options, node: options.node ?? on };
  const proxy = { on, here: on === undefined };
  const { planned } = await plannedNode(values, context, { proxy, live: addresses, anyMode: true, lenient: true });
  demandReadable(planned.mode);
  const own = new Set(addresses);
  const attribute = flowAttribution(planned, own);
  const wanted = target === undefined ? () => true : await chosen(planned, target, values, context);
  return {
    node: planned.nodeName,
    tracking: on === undefined ? await openTracking(runner) : podTracking(runner),
    flowOf: (connection, relays) => {
      const flow = attribute(connection, relays);
      return flow !== undefined && wanted(flow) ? flow : undefined;
    },
    mayBeRelayed: mayBeRelayed(own),
    relays: relaysOf(options, context),
    // A service that is named is one whatever its namespace is.
    fits: flowFilter(target === undefined ? options : { ...options, namespace: undefined }),
  };
}

async function chosen(
  planned: PlannedNode,
  target: Target,
  options: Values,
  context: Context,
): Promise<(flow: Flow) => boolean> {
  const found = findTarget(planned, target).filter(({ service }) => planned.state.service(service) !== undefined);
  if (found.length === 0) {
    const like = target.kind === "service" ? await servicesLike(target.service, options, context) : "";
    throw new CommandFailure(`--service=${options.service}: there is no such Service with a ClusterIP${like}`);
  }
  const ports = found.flatMap(({ service, port }) =>
    (planned.state.service(service)?.ports ?? [])
      .filter((one) => port === undefined || one.name === port || String(one.port) === port)
      .map(({ name }) => `${service} ${name}`),
  );
  const wanted = new Set(ports);
  return ({ service, port }) => wanted.has(`${service} ${port}`);
}

/** The connections of services that a node tracks. */
export async function listed(attribution: Attribution, limit = Number.POSITIVE_INFINITY): Promise<readonly Flow[]> {
  const { node, tracking, flowOf, mayBeRelayed, fits = () => true } = attribution;
  const flows: { readonly connection: Connection; readonly flow: Flow }[] = [];
  try {
    for await (const connection of tracking.list()) {
      const flow = flowOf(connection);
      if (flow !== undefined && (mayBeRelayed(flow) || fits(flow))) flows.push({ connection, flow });
      if (flows.length >= limit) break;
    }
  } catch (error) {
    throw unreadable(node, error);
  }
  if (!flows.some(({ flow }) => mayBeRelayed(flow))) return flows.map(({ flow }) => flow);
  return (await relayed(flows, attribution)).filter(fits);
}

/** With the endpoints that only the node's agent knows. */
async function relayed(
  flows: readonly { readonly connection: Connection; readonly flow: Flow }[],
  { flowOf, mayBeRelayed, relays }: Attribution,
): Promise<readonly Flow[]> {
  const table = await relays();
  return flows.map(({ connection, flow }) => (mayBeRelayed(flow) ? flowOf(connection, table) : undefined) ?? flow);
}

/** What is said where a kernel does not give its connections; another error is given back as it is. */
export function unreadable(node: string, error: unknown): unknown {
  if (!(error instanceof CommandError || error instanceof NetlinkError)) return error;
  return new CommandFailure(`the connections of ${node} cannot be read: ${error.message}`, { cause: error });
}

/** What is given of `filterOptions` and `-n`. */
interface FlowFilter extends OptionValues<typeof filterOptions> {
  readonly namespace: string | undefined;
}

function flowFilter({ namespace, from, to, port, state }: FlowFilter): (flow: Flow) => boolean {
  const [isFrom, isTo] = [inAnyOf(from), inAnyOf(to)];
  return (flow) => {
    const { client, frontend, endpoint, service } = flow;
    const ends = endpoint === undefined ? [frontend] : [frontend, endpoint];
    return (
      isIn(namespace, service) &&
      (from.length === 0 || isFrom(client.address)) &&
      (to.length === 0 || ends.some((end) => isTo(end.address))) &&
      (port.length === 0 || ends.some((end) => port.includes(end.port))) &&
      (state.length === 0 || state.some((one) => isState(one, flow)))
    );
  };
}

/** States of connections that have ended, and are only remembered. */
const OVER: ReadonlySet<string> = new Set(["TIME_WAIT", "CLOSE", "CLOSED"]);

const IS: Readonly<Record<(typeof CONDITIONS)[number] | "established", (flow: Flow) => boolean>> = {
  open: ({ state = "" }) => !OVER.has(state),
  unreplied: ({ replied }) => !replied,
  offloaded: ({ offloaded = false }) => offloaded,
  // The kernel does not give the state of a connection in a flowtable, which takes established ones only.
  established: ({ state, offloaded, protocol }) =>
    state === "ESTABLISHED" || (offloaded === true && protocol !== "UDP"),
  gone: ({ endpoint }) => endpoint?.condition === "gone",
};

function isState(name: string, flow: Flow): boolean {
  return name in IS ? IS[name as keyof typeof IS](flow) : flow.state?.toLowerCase() === name;
}

/** By service and port, then by client. */
export function inOrder(flows: readonly Flow[]): readonly Flow[] {
  return flows.toSorted(
    (one, other) =>
      compareTexts(one.service, other.service) ||
      compareTexts(one.port, other.port) ||
      compareTexts(one.protocol, other.protocol) ||
      compareSockets(one.client, other.client) ||
      compareSockets(one.frontend, other.frontend),
  );
}

function compareTexts(one: string, other: string): number {
  return one === other ? 0 : one < other ? -1 : 1;
}

/** Addresses by their value, so that 10.0.0.9 is before 10.0.0.10; IPv4 first. */
function compareSockets(one: FlowSocket, other: FlowSocket): number {
  const [a, b] = [addressWords(one.address), addressWords(other.address)];
  if (a.length !== b.length) return a.length - b.length;
  const at = a.findIndex((word, index) => word !== b[index]);
  if (at >= 0) return ((a[at] ?? 0) >>> 0) - ((b[at] ?? 0) >>> 0);
  return one.port - other.port;
}

/** Milliseconds for which what the agent said is used again: --follow would ask for each connection. */
const FRESH_MS = 1_000;

/** Whether what answers may be a relay: it has an address of the node, and is not an endpoint. */
export function mayBeRelayed(nodeAddresses: ReadonlySet<string>): (flow: Flow) => boolean {
  return ({ endpoint }) => endpoint?.condition === "gone" && nodeAddresses.has(endpoint.address);
}

/** Asks the node's agent what it relays, in userspace mode; if it does not say, one warning says so. */
export function relaysOf(options: Parameters<typeof askAgent>[1], context: Context): () => Promise<Relays | undefined> {
  let said: Promise<Relays | undefined> | undefined;
  let askedAt = 0;
  let warned = false;
  const ask = async () => {
    try {
      return readRelays(await askAgent("/relays", options, context));
    } catch (error) {
      if (!warned) context.warn(`in userspace mode some of (gone) may be the agent's own relays: ${errorText(error)}`);
      warned = true;
      return undefined;
    }
  };
  return () => {
    const now = performance.now();
    if (said !== undefined && now - askedAt < FRESH_MS) return said;
    askedAt = now;
    said = ask();
    return said;
  };
}
