import { fieldsOf, stringOf } from "@fairlead/base";
import { checkCIDR } from "@fairlead/endpoint-filter";
import { CONSENT_NAME } from "@fairlead/intake";
import { openCluster } from "../../cluster/cluster.ts";
import { CONFIG_MAPS, inNamespace } from "../../cluster/resources.ts";
import type { CommandInput } from "../../frame/command.ts";
import type { Context } from "../../frame/context.ts";
import { CommandFailure, UsageError } from "../../frame/errors.ts";
import { plannedNode } from "../../inputs/planned.ts";
import { type ConsentEntry, withEntry } from "./consent-text.ts";
import { handOver } from "./handed-over.ts";
import type { ownershipOptions } from "./options.ts";

type Options = CommandInput<typeof ownershipOptions>["options"];

/** How long nodes that were away find what is to be forgotten. */
const FORGET_MS = 30 * 24 * 3_600_000;

/** Shows what changes hands, and with --yes writes the entry to the ConfigMap, for all nodes. */
export async function changeConsent(options: Options, context: Context): Promise<void> {
  if (options.live || options.on !== undefined) {
    throw new UsageError("--accept, --forget: agents take no consent of their own; leave out --live and --on");
  }
  if (options.accept !== undefined && options.forget !== undefined) {
    throw new UsageError("--accept, --forget: one at a time");
  }
  const [name, given] = options.accept === undefined ? ["forget", options.forget ?? ""] : ["accept", options.accept];
  const checked = checkCIDR(given);
  if ("problem" in checked) throw new UsageError(`--${name} ${given}: ${checked.problem}`);
  const planned = await plannedNode(options, context, { everywhere: true });
  const { networks } = planned.setup;
  if (networks === undefined) {
    throw new UsageError(`--${name}: this configuration learns nothing; give that of the agents, --config FILE`);
  }
  if (name === "accept") showAccepted(handOver(planned, checked.cidr), checked.cidr, context);
  else context.out(`What is kept of ${checked.cidr} and no object defines anymore is forgotten on all nodes.\n`);
  const where = `ConfigMap ${networks.consentNamespace}/${CONSENT_NAME}`;
  if (options.yes) await write(options, context, networks.consentNamespace, { name, cidr: checked.cidr, where });
  else context.out(`Nothing is written; --yes adds ${checked.cidr} to ${where}.\n`);
}

function showAccepted({ held, services }: ReturnType<typeof handOver>, cidr: string, { out }: Context): void {
  out(held.length === 0 ? `Nothing that is held now lies in ${cidr}.\n` : `Takes effect: ${held.join("; ")}\n`);
  out(
    services.length === 0
      ? "No service changes hands.\n"
      : `Changes hands:\n${services.map((one) => `  ${one}\n`).join("")}`,
  );
}

interface Change {
  readonly name: string;
  readonly cidr: string;
  readonly where: string;
}

async function write(options: Options, context: Context, namespace: string, change: Change): Promise<void> {
  const cluster = openCluster(options, context);
  const existing = await cluster.get(inNamespace(CONFIG_MAPS, namespace), CONSENT_NAME);
  const key = change.name === "accept" ? "accepted" : "forgotten";
  const raw = fieldsOf(existing);
  const data = fieldsOf(raw["data"]);
  const text = withEntry(stringOf(data[key]), entryOf(options, context, change));
  if (text === undefined) {
    throw new CommandFailure(`${change.where}: data.${key} is not a list; mend it first, agents use the last good one`);
  }
  const metadata = { ...fieldsOf(raw["metadata"]), name: CONSENT_NAME, namespace };
  const object = { ...raw, apiVersion: "v1", kind: "ConfigMap", metadata, data: { ...data, [key]: text } };
  await (existing === undefined ? cluster.create(object) : cluster.replace(object));
  context.out(`Written: ${change.cidr} is in ${key} of ${change.where}.\n`);
}

function entryOf({ why }: Options, { env }: Context, { name, cidr }: Change): ConsentEntry {
  const by = env["USER"] ?? env["LOGNAME"] ?? "unknown";
  if (name === "accept") return { cidr, by, why: why ?? "" };
  return { cidr, until: new Date(Date.now() + FORGET_MS).toISOString(), by };
}
