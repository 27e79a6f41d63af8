import { dryRun, type PlannedNode, parseTarget, type Target } from "@fairlead/inspect";
import type { CommandInput } from "../../frame/command.ts";
import type { Context } from "../../frame/context.ts";
import { CommandFailure, UsageError } from "../../frame/errors.ts";
import type { AgentSetup } from "../../inputs/agent.ts";
import { namespaceOf } from "../../inputs/cluster-access.ts";
import { configurationOf, sayConfiguration } from "../../inputs/configuration.ts";
import { plannedNode } from "../../inputs/planned.ts";
import { servicesLike } from "../../inputs/services-like.ts";
import { type ReadRules, stateOfParts } from "../../node/rules.ts";
import type { traceOptions } from "./options.ts";
import { type Destination, NO_DESTINATION, socketDestination } from "./packet.ts";
import { serviceDestination } from "./service-destination.ts";

type Values = CommandInput<typeof traceOptions>["options"];

/** Where a packet goes, with the rules that it meets where those are a plan's. */
export interface TraceDestination {
  readonly destination: Destination;
  /** What an agent would write for the manifests; absent: the rules are a file's or a kernel's. */
  readonly planned?: ReadRules;
  /** Where pods are, as the proxy has it; absent: it was not asked. */
  readonly clusterCIDRs?: readonly string[];
}

/**
 * Reads --to. A service by its name or node port is looked up in the manifests, or else in the cluster.
 *
 * @throws UsageError or CommandFailure naming the option and what would be right
 */
export async function readTraceDestination(options: Values, context: Context): Promise<TraceDestination> {
  const { to, file, rules, live, on } = options;
  const socket = socketDestination(options);
  const plans = file.length > 0 && rules === undefined && on === undefined && !live;
  const here = !plans && rules === undefined && on === undefined;
  if (socket !== undefined && !plans) return { destination: socket, ...(await podCIDRs(options, here, context)) };
  const target = socket === undefined ? targetOf(to, await namespaceOf(options, context)) : undefined;
  // Rules from elsewhere: the owner of the address is unknown there.
  if (target?.kind === "host" && rules !== undefined && file.length === 0) throw noDestination(to);
  const everywhere = !plans && target?.kind !== "nodePort";
  const values = { ...options, node: options.node ?? on };
  const proxy = { on, here, any: everywhere };
  const { planned, setup } = await plannedNode(values, context, { everywhere, proxy, lenient: true });
  const destination = socket ?? (await destinationOf(planned, target, options, context));
  const { clusterCIDRs } = setup.config;
  return { destination, clusterCIDRs, ...(plans && { planned: await plannedRules(planned, setup, destination) }) };
}

/** Only where a sender is named by what it is, of a kernel that is looked at. */
async function podCIDRs(
  options: Values,
  here: boolean,
  context: Context,
): Promise<Pick<TraceDestination, "clusterCIDRs">> {
  const { from, on, "cluster-cidr": given } = options;
  if ((from !== "pod" && from !== "outside") || given.length > 0 || (!here && on === undefined)) return {};
  const configured = await configurationOf(options, { on, here }, context, { anyMode: true, lenient: true });
  sayConfiguration(configured, context);
  return { clusterCIDRs: configured.setup.config.clusterCIDRs };
}

function targetOf(to: string | undefined, namespace: string): Exclude<Target, { kind: "address" }> {
  try {
    const target = parseTarget(to ?? "", namespace);
    if (target.kind !== "address") return target;
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
  }
  throw noDestination(to);
}

function noDestination(to: string | undefined): UsageError {
  return new UsageError(`--to${to === undefined ? "" : `=${to}`}: ${NO_DESTINATION}`);
}

async function destinationOf(
  planned: PlannedNode,
  target: Exclude<Target, { kind: "address" }> | undefined,
  options: Values,
  context: Context,
): Promise<Destination> {
  const { to = "" } = options;
  const found = target && serviceDestination(planned, target, to);
  if (found !== undefined) return found;
  const like = target?.kind === "service" ? await servicesLike(target.service, options, context) : "";
  throw new CommandFailure(`--to=${to}: there is no such service with a ClusterIP${like}`);
}

async function plannedRules(
  { planner, mode, options }: PlannedNode,
  { config }: AgentSetup,
  { family }: Destination,
): Promise<ReadRules> {
  const own = options.nodeIPs[family];
  const host = { localAddresses: own === undefined ? [] : [own] };
  const { ruleSet, nftables, environment } = stateOfParts(
    await dryRun(planner.plan(family), { mode, config }),
    family,
    host,
  );
  return { rules: ruleSet, nftables, environment };
}
