/** `migrate`: replaces kube-proxy node by node, or goes back. */

import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { errorChainText, errorText, itemsOf, stringOf, systemClock } from "@fairlead/base";
import { stringify } from "yaml";
import { openCluster } from "../../cluster/cluster.ts";
import type { migrateOptions } from "../../facts/clusters.ts";
import type { CommandInput, ExitCode } from "../../frame/command.ts";
import type { Context } from "../../frame/context.ts";
import { CommandFailure, UsageError } from "../../frame/errors.ts";
import { print } from "../../frame/output.ts";
import { findingsText, tableText } from "../../frame/text.ts";
import { fairleadObjects, type Installation, type InstallationOptions } from "../../migrate/manifests.ts";
import { migrate, type Outcome } from "../../migrate/migrate.ts";
import type { Step } from "../../migrate/next-step.ts";
import {
  type ClusterObjects,
  FAIRLEAD,
  isManaged,
  KUBE_PROXY_DAEMON_SET,
  type MigrationState,
  migrationState,
  type NodeState,
  type ProxyName,
  rememberedOptions,
} from "../../migrate/state.ts";
import { type Survey, survey } from "../../migrate/survey.ts";
import { version } from "../../version.ts";
import { whileOnlyWriter } from "./holder.ts";
import {
  type ChangedCluster,
  clusterObjects,
  clusterPort,
  givenDaemonSet,
  isForMigration,
  kubeProxyName,
  surveyObjects,
} from "./port.ts";
import {
  answerText,
  checkReportOptions,
  dataOf,
  exitCodeOf,
  type ModeAnswer,
  modeAnswer,
  reportMode,
  reportServed,
  runningConfig,
  wantedMode,
} from "./to-mode.ts";
import { nodeVerifier } from "./verify.ts";

type Values = CommandInput<typeof migrateOptions>["options"];

/** Milliseconds between two looks at the cluster, and for a node to be as it should in spite of changes meanwhile. */
const LOOK_MS = 1_000;
const VERIFY_MS = 30_000;

export async function run({ options }: CommandInput<typeof migrateOptions>, context: Context): Promise<ExitCode> {
  if (options.apply && options.revert) throw new UsageError("--apply and --revert are mutually exclusive");
  const patience = patienceOf(options);
  const { "to-mode": toMode } = options;
  checkReportOptions(options);
  if (toMode !== undefined && options.file.length > 0) return reportMode(toMode, options, context);
  const asked = givenDaemonSet(options["kube-proxy"]);
  const opened = openCluster(options, context);
  const cluster = { cluster: opened, kubeProxy: await kubeProxyName(opened, asked) };
  const served = await modeOfServed(options, cluster);
  if (served !== undefined) return reportServed(served, options, opened, context);
  const objects = await context.progress("reading the cluster", () => clusterObjects(cluster));
  demandOwn(objects);
  const surveyed = await surveyedOf(options, objects, cluster);
  const { installation } = surveyed.found;
  if (migrationState(objects).nodes.length === 0 && !options.revert) {
    throw new CommandFailure(
      `no Node has what DaemonSet ${cluster.kubeProxy.namespace}/${cluster.kubeProxy.name} selects (nodeSelector): there is nothing to migrate`,
    );
  }
  if (options["output-dir"] !== undefined && installation !== undefined) {
    await writeManifests(options["output-dir"], installation);
  }
  const change = await changeOf(surveyed.before, objects, options, context);
  if (!options.apply && !options.revert) return report(surveyed, migrationState(objects), change, options, context);
  if (options.apply && (installation === undefined || isBlocked(change))) {
    context.out(findingsText(surveyed.found.findings, context.style));
    if (change !== undefined) context.out(answerText(change, context));
    return 1;
  }
  const goal = options.apply ? "fairlead" : "kube-proxy";
  const installations = { installation, before: surveyed.before.installation };
  const outcome = await context.untilStopped(() =>
    whileOnlyWriter(opened, context, (signal) =>
      carryOut(goal, installations, patience, options, cluster, { ...context, signal }),
    ),
  );
  return reported(outcome, goal, options, context);
}

function demandOwn({ fairlead }: ClusterObjects): void {
  if (fairlead === undefined || isManaged(fairlead)) return;
  throw new CommandFailure(
    `DaemonSet kube-system/${FAIRLEAD} is there, and not from \`fairlead migrate\`: remove it, or go on by hand (docs/migrate-from-kube-proxy.md)`,
  );
}

/** The mode to report on where there is no migration; undefined: more than that is asked for, or there is one. */
async function modeOfServed(options: Values, cluster: ChangedCluster): Promise<Values["to-mode"]> {
  const { "to-mode": toMode, apply, revert, "kube-proxy": asked } = options;
  if (toMode === undefined || apply || revert || asked !== undefined) return undefined;
  return (await isForMigration(cluster)) ? undefined : toMode;
}

function patienceOf(options: Values): Patience {
  const waitMs = milliseconds("--timeout", options.timeout ?? "180");
  const holdMs = milliseconds("--hold", options.hold ?? "10");
  return { lookMs: LOOK_MS, verifyMs: Math.min(VERIFY_MS, waitMs), holdMs, waitMs };
}

interface Surveyed {
  readonly found: Survey;
  /** The same in kube-proxy's own mode, which is what kube-proxy serves. */
  readonly before: Survey;
  readonly image: string;
}

async function surveyedOf(options: Values, objects: ClusterObjects, cluster: ChangedCluster): Promise<Surveyed> {
  const read = await surveyObjects(objects.kubeProxy, cluster);
  const wanted = { ...installationOptions(options, objects.fairlead, cluster), version };
  const before = survey(read, wanted);
  const mode = wantedMode(options, objects.fairlead, before);
  const found = mode === undefined ? before : survey(read, { ...wanted, mode });
  return { found, before, image: wanted.image };
}

/** What the mode that is asked for means for the nodes; undefined: none is, or kube-proxy's setup cannot be read. */
async function changeOf(
  { config }: Survey,
  { fairlead, nodes }: ClusterObjects,
  options: Values,
  context: Context,
): Promise<ModeAnswer | undefined> {
  const { "to-mode": toMode, revert } = options;
  if (toMode === undefined || revert || config === undefined) return undefined;
  return modeAnswer(toMode, options, { config: runningConfig(config, fairlead), nodes }, context);
}

function isBlocked(change: ModeAnswer | undefined): boolean {
  return change !== undefined && exitCodeOf(change) === 1;
}

/** What is not given is what an earlier run was given: it goes on with the same. */
function installationOptions(
  options: Values,
  fairlead: unknown,
  { kubeProxy: at }: ChangedCluster,
): InstallationOptions {
  const kubeProxy = `${at.namespace}/${at.name}`;
  const { image, excludeClusterCIDRs, apiServer } = rememberedOptions(fairlead);
  const cidrs = options["exclude-cluster-cidr"];
  return {
    image: options.image ?? stringOf(image) ?? `ghcr.io/fairlead-dev/fairlead:${version}`,
    excludeClusterCIDRs:
      cidrs.length > 0 ? cidrs : itemsOf(excludeClusterCIDRs).filter((one) => typeof one === "string"),
    apiServer: options["api-server"] ?? stringOf(apiServer),
    ...(kubeProxy !== KUBE_PROXY_DAEMON_SET && { kubeProxy }),
  };
}

async function report(
  { found: { findings }, image }: Surveyed,
  state: MigrationState,
  change: ModeAnswer | undefined,
  options: Values,
  context: Context,
): Promise<ExitCode> {
  const { nodes } = state;
  const parts = () => [
    findingsText(findings, context.style),
    ...(change === undefined ? [] : [answerText(change, context)]),
    nodesText(state),
    planText(state, image),
  ];
  const data = { findings, image, nodes, ...(change && { mode: dataOf(change) }) };
  await print(options.output, data, () => parts().join("\n"), context);
  return isBlocked(change) || findings.some(({ state: one }) => one === "blocks") ? 1 : 0;
}

type Patience = Parameters<typeof migrate>[1]["patience"];

/** What is installed, and the same in kube-proxy's own mode. */
interface Installations {
  readonly installation: Installation | undefined;
  readonly before: Installation | undefined;
}

async function carryOut(
  goal: ProxyName,
  { installation, before }: Installations,
  patience: Patience,
  options: Values,
  cluster: ChangedCluster,
  context: Context,
): Promise<Outcome> {
  const folder = await mkdtemp(join(tmpdir(), "fairlead-migrate-"));
  try {
    const configs = { fairlead: join(folder, "config.conf"), "kube-proxy": join(folder, "kube-proxy.conf") };
    await writeFile(configs.fairlead, installation?.files["config.conf"] ?? "");
    // Only where the modes differ are they two: each is planned for by itself.
    if (installation?.options.mode === undefined) configs["kube-proxy"] = configs.fairlead;
    else await writeFile(configs["kube-proxy"], before?.files["config.conf"] ?? "");
    const verifier =
      installation && nodeVerifier(installation, configs, { cluster: cluster.cluster, access: options }, context);
    const unseen = { kind: "unseen", reason: "kube-proxy's configuration cannot be read; see --skip-verify" } as const;
    const port = clusterPort(cluster, installation, verifier ?? (async () => unseen));
    let last: string | undefined;
    const onStep = (step: Parameters<typeof stepText>[0]) => {
      const line = stepText(step);
      if (line !== undefined && line !== last && options.output === "table") context.out(`${line}\n`);
      last = line;
    };
    const { signal } = context;
    return await migrate(port, { goal, verify: !options["skip-verify"], patience, clock: systemClock, onStep, signal });
  } catch (error) {
    throw new CommandFailure(`Stopped: ${errorChainText(error)}\n${GOES_ON}`, { cause: error });
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

async function reported(outcome: Outcome, goal: ProxyName, { output }: Values, context: Context): Promise<ExitCode> {
  await print(output, { goal, ...outcome }, () => outcomeText(outcome, goal), context);
  return outcome.kind === "done" ? 0 : 1;
}

function milliseconds(option: string, text: string): number {
  if (/^\d{1,5}$/.test(text)) return Number(text) * 1000;
  throw new UsageError(`${option}=${text}: give seconds, 0 to 99999`);
}

function nodesText({ nodes }: MigrationState): string {
  const rows = nodes.map((node) => [node.name, node.ready ? "yes" : "no", servedBy(node), node.problem ?? ""]);
  return tableText(["node", "ready", "served by", "problem"], rows);
}

/** By its pods, as they are. */
function servedBy({ pods }: NodeState): string {
  const names = (["kube-proxy", "fairlead"] as const).flatMap((proxy) => {
    const pod = pods[proxy];
    return pod === undefined ? [] : [pod.ready ? proxy : `${proxy} (not ready)`];
  });
  return names.join(", ") || "none";
}

function planText({ nodes }: MigrationState, image: string): string {
  const left = nodes
    .filter(({ label, proven }) => label !== "fairlead" || proven !== "fairlead")
    .map(({ name }) => name);
  if (left.length === 0) return "Every node has Fairlead.\n";
  return [
    "With --apply:",
    "  1. kube-proxy's DaemonSet leaves nodes with the label fairlead.dev/proxy=fairlead; its pods start once more",
    `  2. Fairlead's DaemonSet (${image}) is installed for nodes with that label`,
    `  3. one after the other, verified before and after: ${left.join(", ")}`,
    "  4. nodes to come get Fairlead; kube-proxy's DaemonSet stays, without pods, for --revert",
    "",
  ].join("\n");
}

/** A line of progress; undefined for what others report. */
function stepText(step: Step): string | undefined {
  switch (step.do) {
    case "install":
      return "Fairlead's objects are written";
    case "uninstall":
      return "Fairlead's objects are removed";
    case "place":
      return `${step.proxy}: ${PLACEMENT_TEXTS[step.placement]}`;
    case "wait":
      return `waiting: ${step.for.join("; ")}`;
    case "check":
      return `${step.node}: verified before its change`;
    case "switch":
      return `${step.node}: gets ${step.to}`;
    case "prove":
      return `${step.node}: verified with ${step.proxy}, and watched for a while`;
    case "put-back":
      return `${step.node}: put back to ${step.to}: ${step.reason}`;
    case "unmark":
      return "labels and marks are taken off the nodes";
    case "stop":
    case "done":
      return undefined;
  }
}

const PLACEMENT_TEXTS = {
  everywhere: "on every node, as before",
  "unless-other": "on nodes that are not the other's",
  labeled: "only on nodes with its label",
} as const;

/** What to do after a failure. */
const GOES_ON = "Correct that and run the command again: it continues.";

function outcomeText(outcome: Outcome, goal: ProxyName): string {
  if (outcome.kind === "done") return `Every node, and those to come, has ${goal}.\n`;
  if (outcome.kind === "stopped") return `Stopped: ${outcome.reason}\n${GOES_ON}\n`;
  return "Interrupted between two steps. Run the command again: it continues.\n";
}

/** Writes Fairlead's manifests as --apply would install them at first: for nodes with the label. */
async function writeManifests(folder: string, installation: Installation): Promise<void> {
  try {
    await mkdir(folder, { recursive: true });
    for (const object of fairleadObjects(installation, "labeled")) {
      await writeFile(join(folder, `${object.kind.toLowerCase()}.yaml`), stringify(object, { lineWidth: 0 }));
    }
  } catch (error) {
    throw new CommandFailure(`--output-dir=${folder}: ${errorText(error)}`, { cause: error });
  }
}
