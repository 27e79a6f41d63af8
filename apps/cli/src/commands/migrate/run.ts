import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { errorChainText, itemsOf, stringOf, systemClock } from "@fairlead/base";
import {
  FAIRLEAD,
  type Installation,
  type InstallationOptions,
  isManaged,
  KUBE_PROXY_DAEMON_SET,
  type MigrationState,
  migrate,
  migrationState,
  type Outcome,
  type ProxyName,
  rememberedOptions,
  type Survey,
  survey,
} from "@fairlead/migrate";
import { openCluster } from "../../cluster/cluster.ts";
import type { CommandInput, ExitCode } from "../../frame/command.ts";
import type { Context } from "../../frame/context.ts";
import { CommandFailure, UsageError } from "../../frame/errors.ts";
import { print } from "../../output/output.ts";
import { version } from "../../version.ts";
import { type ChangedCluster, clusterObjects, kubeProxyName, surveyObjects } from "./cluster.ts";
import { changingAlone } from "./holder.ts";
import { givenDaemonSet } from "./object-name.ts";
import type { migrateOptions } from "./options.ts";
import { clusterPort } from "./port.ts";
import { findingsText, GOES_ON, nodesText, outcomeText, planText, stepText } from "./text.ts";
import { nodeVerifier } from "./verify.ts";
import { writeManifests } from "./write.ts";

type Values = CommandInput<typeof migrateOptions>["options"];

/** Milliseconds between two looks at the cluster, and for a node to be as it should in spite of changes meanwhile. */
const LOOK_MS = 1_000;
const VERIFY_MS = 30_000;

export async function run({ options }: CommandInput<typeof migrateOptions>, context: Context): Promise<ExitCode> {
  if (options.apply && options.revert) throw new UsageError("--apply and --revert: only one of them");
  const waitMs = milliseconds("--timeout", options.timeout ?? "180");
  const holdMs = milliseconds("--hold", options.hold ?? "10");
  const patience = { lookMs: LOOK_MS, verifyMs: Math.min(VERIFY_MS, waitMs), holdMs, waitMs };
  const asked = givenDaemonSet(options["kube-proxy"]);
  const opened = openCluster(options, context);
  const cluster = { cluster: opened, kubeProxy: await kubeProxyName(opened, asked) };
  const objects = await context.progress("reading the cluster", () => clusterObjects(cluster));
  if (objects.fairlead !== undefined && !isManaged(objects.fairlead)) {
    throw new CommandFailure(
      `DaemonSet kube-system/${FAIRLEAD} is there, and not from \`fairlead migrate\`: remove it, or go on by hand (docs/migrate-from-kube-proxy.md)`,
    );
  }
  const wanted = installationOptions(options, objects.fairlead, cluster);
  const found = survey(await surveyObjects(objects.kubeProxy, cluster), { ...wanted, version });
  const state = migrationState(objects);
  const { installation } = found;
  if (state.nodes.length === 0 && !options.revert) {
    throw new CommandFailure(
      `no Node has what DaemonSet ${cluster.kubeProxy.namespace}/${cluster.kubeProxy.name} selects (nodeSelector): there is nothing to migrate`,
    );
  }
  if (options["output-dir"] !== undefined && installation !== undefined) {
    await writeManifests(options["output-dir"], installation);
  }
  if (!options.apply && !options.revert) return report(found, state, wanted.image, options, context);
  if (options.apply && installation === undefined) {
    context.out(findingsText(found.findings, context.style));
    return 1;
  }
  const goal = options.apply ? "fairlead" : "kube-proxy";
  const outcome = await context.untilStopped(() =>
    changingAlone(opened, context, (signal) =>
      carryOut(goal, installation, patience, options, cluster, { ...context, signal }),
    ),
  );
  return reported(outcome, goal, options, context);
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
  { findings }: Survey,
  state: MigrationState,
  image: string,
  options: Values,
  context: Context,
): Promise<ExitCode> {
  const { nodes } = state;
  const text = () => `${findingsText(findings, context.style)}\n${nodesText(state)}\n${planText(state, image)}`;
  await print(options.output, { findings, image, nodes }, text, context);
  return findings.some(({ state: one }) => one === "blocks") ? 1 : 0;
}

type Patience = Parameters<typeof migrate>[1]["patience"];

async function carryOut(
  goal: ProxyName,
  installation: Installation | undefined,
  patience: Patience,
  options: Values,
  cluster: ChangedCluster,
  context: Context,
): Promise<Outcome> {
  const folder = await mkdtemp(join(tmpdir(), "fairlead-migrate-"));
  try {
    const config = join(folder, "config.conf");
    await writeFile(config, installation?.files["config.conf"] ?? "");
    using verifier =
      installation && nodeVerifier(installation, config, { cluster: cluster.cluster, access: options }, context);
    const unseen = { kind: "unseen", reason: "kube-proxy's configuration cannot be read; see --skip-verify" } as const;
    const port = clusterPort(cluster, installation, verifier?.verify ?? (async () => unseen));
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
