import { checkCIDR } from "@fairlead/endpoint-filter";
import { CONSENT_NAME } from "@fairlead/intake";
import type { CommandInput } from "../../frame/command.ts";
import type { Context } from "../../frame/context.ts";
import { CommandFailure, UsageError } from "../../frame/errors.ts";
import { type PlannedSetup, plannedNode } from "../../inputs/planned.ts";
import { portsOf } from "../../node/agent-endpoint.ts";
import { allOwnership } from "../../node/agent-ownership.ts";
import { agentsOf } from "../../node/agent-pods.ts";
import { handOver } from "./handed-over.ts";
import { inEffect } from "./in-effect.ts";
import type { ownershipOptions } from "./options.ts";
import { writeConsent } from "./write-consent.ts";

type Options = CommandInput<typeof ownershipOptions>["options"];

/** In place of a CIDR: all that running agents let take effect. */
const IN_EFFECT = "in-effect";

/** Shows what changes hands, and with --yes writes the entries to the ConfigMap, for all nodes. */
export async function changeConsent(options: Options, context: Context): Promise<void> {
  const { accept, forget } = options;
  if (options.live || options.on !== undefined) {
    throw new UsageError(
      "--accept, --forget: agents take no consent of their own; leave out --live and --on, and the ConfigMap has it for all nodes",
    );
  }
  if (accept !== undefined && forget !== undefined) throw new UsageError("--accept, --forget: one at a time");
  const cidr = accept === IN_EFFECT ? undefined : checkedCIDR(options);
  const planned = await plannedNode(options, context, { everywhere: true });
  const { networks } = planned.setup;
  if (networks === undefined) {
    const name = accept === undefined ? "forget" : "accept";
    throw new UsageError(`--${name}: this configuration learns nothing; give that of the agents, --config FILE`);
  }
  const cidrs = cidr === undefined ? await runningCIDRs(options, planned, context) : [cidr];
  if (cidr !== undefined && accept !== undefined) showAccepted(handOver(planned, cidr), cidr, context);
  if (forget !== undefined)
    context.out(`What is kept of ${cidr} and no object defines anymore is forgotten on all nodes.\n`);
  if (cidrs.length === 0) return;
  const where = `ConfigMap ${networks.consentNamespace}/${CONSENT_NAME}`;
  if (options.yes) await writeConsent(options, context, networks.consentNamespace, cidrs);
  else context.out(`Nothing is written; --yes adds ${cidrs.join(", ")} to ${where}.\n`);
}

function checkedCIDR({ accept, forget }: Options): string {
  const [name, given] = accept === undefined ? ["forget", forget ?? ""] : ["accept", accept];
  const checked = checkCIDR(given);
  if ("problem" in checked) throw new UsageError(`--${name} ${given}: ${checked.problem}`);
  return checked.cidr;
}

function showAccepted({ held, services }: ReturnType<typeof handOver>, cidr: string, { out }: Context): void {
  out(held.length === 0 ? `Nothing that is held now lies in ${cidr}.\n` : `Takes effect: ${held.join("; ")}\n`);
  out(
    services.length === 0
      ? "No service changes hands.\n"
      : `Changes hands:\n${services.map((one) => `  ${one}\n`).join("")}`,
  );
}

/** What running agents let take effect and only consent lets go on; says how else it can. */
async function runningCIDRs(options: Options, planned: PlannedSetup, context: Context): Promise<readonly string[]> {
  const agents = agentsOf(options, context);
  const nodes = await context.progress("asking the agents", () => allOwnership(agents, portsOf(options).metrics));
  for (const one of nodes) if ("problem" in one) context.warn(`${one.node}: its agent does not answer: ${one.problem}`);
  if (nodes.every((one) => "problem" in one)) throw new CommandFailure("--accept in-effect: no agent answers");
  const { held, refused, gone, within } = inEffect(nodes, planned.learned?.report.cidrs ?? []);
  const named = ({ cidr, objects }: (typeof held)[number]) => `  ${cidr} of ${objects.join(", ")}`;
  const list = (title: string, lines: readonly string[]) =>
    lines.length > 0 && context.out(`${title}\n${lines.map((line) => `${line}\n`).join("")}`);
  if (held.length === 0) context.out("All that running agents let take effect needs no consent.\n");
  list("In effect now, and held without consent:", held.map(named));
  const services = held.flatMap(({ cidr }) => handOver(planned, cidr).services.map((one) => one.replace(/:.*/, "")));
  list("Services that consent keeps where they are:", [...new Set(services)].map((one) => `  ${one}`).sort());
  list(
    "In place of consent, in the configuration of the agents:",
    [...within].map(([source, cidrs]) => `  ${source}: within: [${cidrs.join(", ")}]`),
  );
  list(
    "Refused, whatever is accepted:",
    refused.map((one) => `${named(one)}: ${one.why ?? ""}`),
  );
  list("Kept until the removal delay is over, since no object defines them anymore:", gone.map(named));
  return held.map(({ cidr }) => cidr);
}
