import {
  type AttributeFlow,
  type Flow,
  findTarget,
  flowAttribution,
  type PlannedNode,
  type Relays,
  type Target,
} from "@fairlead/inspect";
import { openTracking, type Tracking } from "@fairlead/kernel";
import type { CommandInput } from "../../frame/command.ts";
import type { Context } from "../../frame/context.ts";
import { CommandFailure } from "../../frame/errors.ts";
import { namespaceOf } from "../../inputs/cluster-access.ts";
import { plannedNode } from "../../inputs/planned.ts";
import { servicesLike } from "../../inputs/services-like.ts";
import { targetOf } from "../../inputs/target.ts";
import { interfaceAddresses, runnerFor, stateOf } from "../../node/access.ts";
import { podTracking } from "../../node/connections.ts";
import { flowFilter } from "./filter.ts";
import type { connectionOptions } from "./options.ts";
import { mayBeRelayed, relaysOf } from "./relays.ts";

type Values = CommandInput<typeof connectionOptions>["options"];

/** A node's connections, and whose each of them is. */
export interface Attribution {
  readonly node: string;
  readonly tracking: Tracking;
  /** Undefined: it is no service's, or not one's that was asked for. */
  readonly flowOf: AttributeFlow;
  /** Whether what answers may be a relay of the node's agent: then `flowOf` has to know what that one relays. */
  readonly mayBeRelayed: (flow: Flow) => boolean;
  /** What the node's agent relays now; undefined: it does not say. */
  readonly relays: () => Promise<Relays | undefined>;
  /** Whether it is one that the options choose: asked once it is known what is relayed; absent: all are. */
  readonly fits?: (flow: Flow) => boolean;
}

/** @throws CommandFailure when objects or kernel cannot be read, or there is no such service */
export async function openAttribution(options: Values, context: Context): Promise<Attribution> {
  const { service: asked, on } = options;
  const target = asked === undefined ? undefined : targetOf(asked, await namespaceOf(options, context), "service");
  const runner = await runnerFor(options, context);
  const addresses = interfaceAddresses(await stateOf(options, context, ["addresses"]));
  const values = { ...options, node: options.node ?? on };
  const proxy = { on, here: on === undefined };
  const { planned } = await plannedNode(values, context, { proxy, live: addresses, anyMode: true, lenient: true });
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
