/** `ownership --accept` and `--forget`: what changes, and the ConfigMap that all agents read. */

import { containsCIDR, fieldsOf, stringOf } from "@fairlead/base";
import { checkCIDR, filterBySides } from "@fairlead/endpoint-filter";
import { CONSENT_NAME } from "@fairlead/intake";
import { isSeq, parseDocument, stringify } from "yaml";
import { openCluster } from "../cluster/cluster.ts";
import { CONFIG_MAPS, inNamespace } from "../cluster/resources.ts";
import type { ownershipOptions } from "../facts/nodes.ts";
import type { CommandInput } from "../frame/command.ts";
import type { Context } from "../frame/context.ts";
import { CommandFailure, UsageError } from "../frame/errors.ts";
import { type PlannedSetup, plannedNode } from "../inputs/planned.ts";

type Options = CommandInput<typeof ownershipOptions>["options"];

/** Shows what changes hands, and with --yes writes the entries to the ConfigMap, for all nodes. */
export async function changeConsent(options: Options, context: Context): Promise<void> {
  const { accept, forget } = options;
  if (options.live || options.on !== undefined) {
    throw new UsageError(
      "--accept, --forget: agents take no consent of their own; leave out --live and --on, and the ConfigMap has it for all nodes",
    );
  }
  if (accept !== undefined && forget !== undefined) throw new UsageError("--accept, --forget: one at a time");
  const cidr = checkedCIDR(options);
  const planned = await plannedNode(options, context, { everywhere: true });
  const { networks } = planned.setup;
  if (networks === undefined) {
    const name = accept === undefined ? "forget" : "accept";
    throw new UsageError(`--${name}: this configuration learns nothing; give that of the agents, --config FILE`);
  }
  if (accept !== undefined) showAccepted(handOver(planned, cidr), cidr, context);
  else context.out(`What is kept of ${cidr} and no object defines anymore is forgotten on all nodes.\n`);
  const where = `ConfigMap ${networks.consentNamespace}/${CONSENT_NAME}`;
  if (options.yes) await writeConsent(options, context, networks.consentNamespace, cidr);
  else context.out(`Nothing is written; --yes adds ${cidr} to ${where}.\n`);
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

interface HandOver {
  /** `10.144.8.0/22 of Subnet/vpn` */
  readonly held: readonly string[];
  /** `default/web IPv4: ours -> foreign` */
  readonly services: readonly string[];
}

function handOver({ planned, setup, learned }: PlannedSetup, cidr: string): HandOver {
  const held = (learned?.report.cidrs ?? []).filter((one) => one.stage === "held" && containsCIDR(cidr, one.cidr));
  if (learned === undefined || held.length === 0) return { held: [], services: [] };
  const { sides: before, neutralAddresses } = learned.decision;
  const sides = held.reduce((all, one) => all.with(one.cidr, "excluded"), before);
  const { decide } = filterBySides(sides, { ...setup.filter, neutralAddresses });
  const services = Array.from(planned.planner.ownerships()).flatMap(({ service, family, decision }) => {
    const object = planned.state.service(service);
    if (decision.decidedBy !== "endpoints" || object === undefined) return [];
    const slices = Array.from(planned.state.slices(service)).filter((slice) => slice.family === family);
    const endpoints = slices.flatMap((slice) => slice.endpoints);
    const { ownership } = decide(object, family, endpoints, undefined);
    return ownership === decision.ownership ? [] : [`${service} ${family}: ${decision.ownership} -> ${ownership}`];
  });
  return { held: held.map((one) => `${one.cidr} of ${one.objects.join(", ")}`), services: services.sort() };
}

/** How long nodes that were away find what is to be forgotten. */
const FORGET_MS = 30 * 24 * 3_600_000;

/** Adds a CIDR to the ConfigMap, with the caller's rights; what is there stays. */
async function writeConsent(options: Options, context: Context, namespace: string, cidr: string): Promise<void> {
  const where = `ConfigMap ${namespace}/${CONSENT_NAME}`;
  const cluster = openCluster(options, context);
  const existing = await cluster.get(inNamespace(CONFIG_MAPS, namespace), CONSENT_NAME);
  const key = options.accept === undefined ? "forgotten" : "accepted";
  const raw = fieldsOf(existing);
  const data = fieldsOf(raw["data"]);
  const text = withEntry(stringOf(data[key]), entryOf(options, context, cidr));
  if (text === undefined) {
    throw new CommandFailure(
      `${where}: data.${key} is not a list; fix it first (agents still use the last valid value)`,
    );
  }
  const metadata = { ...fieldsOf(raw["metadata"]), name: CONSENT_NAME, namespace };
  const object = { ...raw, apiVersion: "v1", kind: "ConfigMap", metadata, data: { ...data, [key]: text } };
  await (existing === undefined ? cluster.create(object) : cluster.replace(object));
  context.out(`Written: ${cidr} is in ${key} of ${where}.\n`);
}

function entryOf({ accept, why }: Options, { env }: Context, cidr: string): ConsentEntry {
  const by = env["USER"] ?? env["LOGNAME"] ?? "unknown";
  if (accept !== undefined) return { cidr, by, why: why ?? "" };
  return { cidr, until: new Date(Date.now() + FORGET_MS).toISOString(), by };
}

/** An entry of a list in the ConfigMap `fairlead-networks`. */
type ConsentEntry = Readonly<Record<string, string>>;

/**
 * Adds an entry to a list, and keeps what stands there, comments too. An entry of the same CIDR gives way.
 *
 * @param text YAML or JSON; undefined: there is no list yet
 * @returns undefined: the text is not a list
 */
export function withEntry(text: string | undefined, entry: ConsentEntry): string | undefined {
  if (text === undefined || text.trim() === "") return stringify([entry]);
  const document = parseDocument(text);
  if (document.errors.length > 0 || !isSeq(document.contents)) return undefined;
  const entries: unknown = document.toJS();
  const same = Array.isArray(entries) ? entries.findIndex((one) => cidrOf(one) === entry["cidr"]) : -1;
  if (same >= 0) document.deleteIn([same]);
  document.addIn([], entry);
  return document.toString();
}

function cidrOf(entry: unknown): unknown {
  return typeof entry === "object" && entry !== null && "cidr" in entry ? entry.cidr : undefined;
}
