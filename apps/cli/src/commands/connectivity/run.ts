import { errorText } from "@fairlead/base";
import { openCluster } from "../../cluster/cluster.ts";
import type { CommandInput, ExitCode } from "../../frame/command.ts";
import type { Context } from "../../frame/context.ts";
import { CommandFailure, UsageError } from "../../frame/errors.ts";
import { numberOf } from "../../inputs/number.ts";
import { counted, verdictText } from "../../output/findings.ts";
import { print } from "../../output/output.ts";
import { version } from "../../version.ts";
import type { Acting } from "./act.ts";
import { agentImage, nodeModes } from "./agents.ts";
import { judgedCases } from "./clients.ts";
import { foreignService } from "./foreign.ts";
import { PLACES } from "./model.ts";
import { testNodes } from "./nodes.ts";
import type { connectivityOptions } from "./options.ts";
import { podScript } from "./pod-file.ts";
import { rolledUpdate } from "./rolling.ts";
import { hasDNS, notOwn, prepared, removeAll } from "./setup.ts";
import { type Check, type Judged, reportText } from "./table.ts";

type Values = CommandInput<typeof connectivityOptions>["options"];

const NAMESPACE = "fairlead-connectivity";
const PATIENCE_S = 20;

interface Report {
  readonly nodes: readonly { readonly name: string; readonly mode: string }[];
  readonly cases: readonly Judged[];
  readonly checks: readonly Check[];
}

export async function run({ options }: CommandInput<typeof connectivityOptions>, context: Context): Promise<ExitCode> {
  if (options.node.length !== 0 && new Set(options.node).size !== 2) throw new UsageError("--node: give two nodes");
  const cluster = openCluster(options, context);
  // Before anything is made, and could be waited for.
  const nodes = options["cleanup-only"] ? undefined : await testNodes(cluster, options.node);
  const image = options.image ?? (await agentImage(cluster)) ?? `ghcr.io/fairlead-dev/fairlead:${version}`;
  const settings = { namespace: options.namespace ?? NAMESPACE, image, script: await podScript() };
  const instance = options["service-proxy-name"] ?? "";
  const acting: Acting = { cluster, instance, settings, signal: context.signal, warn: context.warn };
  const cleaned = () => context.progress("removing what the test made", () => removeAll(acting));
  if (nodes === undefined) {
    if (!(await cleaned())) throw notOwn(settings.namespace);
    return 0;
  }
  // An interrupted test ends by itself, and takes away what it made.
  const report = await context.untilStopped(async () => {
    const clean = async () => (options.keep ? undefined : void (await cleaned()));
    return andCleaned(() => tested(acting, nodes, options, context), clean, context.warn);
  });
  const wrong = [...report.cases, ...report.checks].filter(({ complaint }) => complaint !== undefined);
  await print(
    options.output,
    report,
    () =>
      `${headText(report)}\n${reportText(report.cases, report.checks, context.style)}${verdictOf(report, wrong.length, context)}`,
    context,
  );
  return wrong.length === 0 ? 0 : 1;
}

/**
 * Runs a test and takes away what it made. Why it failed is said before that: it may take minutes, or fail as well.
 *
 * @throws CommandFailure when either failed
 */
export async function andCleaned<T>(
  work: () => Promise<T>,
  clean: () => Promise<void>,
  warn: (line: string) => void,
): Promise<T> {
  const cleanedAfter = async (ending: string) => {
    try {
      await clean();
    } catch (error) {
      throw new CommandFailure(`${ending}; not everything was removed: ${errorText(error)}`, { cause: error });
    }
  };
  let done: T;
  try {
    done = await work();
  } catch (error) {
    warn(errorText(error));
    await cleanedAfter("the test failed");
    throw error instanceof CommandFailure ? new CommandFailure("the test failed", { cause: error }) : error;
  }
  await cleanedAfter("the test ended");
  return done;
}

function verdictOf({ cases, checks }: Report, wrong: number, { style }: Context): string {
  const done = counted(cases.length + checks.filter(({ skipped }) => skipped === undefined).length, "test");
  const what = wrong === 0 ? done : `${wrong} of ${done} wrong`;
  return verdictText(
    wrong === 0,
    what,
    "fairlead verify --all-nodes compares the kernels, fairlead doctor --on NODE looks at one",
    style,
  );
}

function headText({ nodes: [here, there] }: Report): string {
  return `here: ${here?.name} (${here?.mode}), there: ${there?.name} (${there?.mode})\n`;
}

async function tested(
  acting: Acting,
  nodes: Awaited<ReturnType<typeof testNodes>>,
  options: Values,
  context: Context,
): Promise<Report> {
  const { settings } = acting;
  const patienceMs = (numberOf("patience", options.patience) ?? PATIENCE_S) * 1_000;
  const external = options["external-address"];
  const step = <T>(what: string, work: () => Promise<T>) => context.progress(what, work);
  const ready = await step(`starting servers in ${settings.namespace}`, () => prepared(acting, { nodes, external }));
  const places = options.outside ? PLACES : PLACES.filter((place) => place !== "outside");
  const dns = await hasDNS(acting);
  const cases = await step("asking every service from every place", () =>
    judgedCases(acting, { ...ready, places, dns }, patienceMs),
  );
  const checks: Check[] = [
    ...(dns ? [] : [{ name: "DNS", skipped: "there is no Service kube-system/kube-dns" }]),
    ...(options.outside ? [] : [{ name: "outside", skipped: "give --outside on a machine that reaches the nodes" }]),
    ...(ready.noExternalIPs === undefined ? [] : [{ name: "external IPs", skipped: ready.noExternalIPs }]),
    ...(options["no-update"]
      ? []
      : [await step("replacing endpoints under requests", () => rolledUpdate(acting, ready))]),
    await step("looking at a foreign service", () =>
      foreignService(acting, ready, options["exclude-cluster-cidr"], patienceMs),
    ),
  ];
  const modes = await nodeModes(acting, nodes);
  return { nodes: nodes.map(({ name }) => ({ name, mode: modes.get(name) ?? "proxy unknown" })), cases, checks };
}
