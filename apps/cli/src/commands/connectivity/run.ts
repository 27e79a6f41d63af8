/** `connectivity`: real packets to services of its own on two nodes. */

import { readFile } from "node:fs/promises";
import { errorText, familyOf, fieldsOf, type IPFamily, itemsOf, parseAddress, stringOf, valueAt } from "@fairlead/base";
import { type Cluster, openCluster } from "../../cluster/cluster.ts";
import { isReady, NODES, nameOf } from "../../cluster/resources.ts";
import type { connectivityOptions } from "../../facts/clusters.ts";
import { type CommandInput, type ExitCode, numberOf } from "../../frame/command.ts";
import type { Context } from "../../frame/context.ts";
import { CommandFailure, UsageError } from "../../frame/errors.ts";
import { print } from "../../frame/output.ts";
import { counted, verdictText } from "../../frame/text.ts";
import { noSuchNode } from "../../inputs/names.ts";
import { version } from "../../version.ts";
import type { Acting } from "./act.ts";
import { agentImage, foreignService, judgedCases, nodeModes, rolledUpdate } from "./checks.ts";
import { type Check, type Judged, PLACES, reportText, type TestNode } from "./plan.ts";
import { hasDNS, notOwn, prepared, removeAll } from "./setup.ts";

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

/** Runs a test and takes away what it made. Why it failed is said before that: it may take minutes, or fail as well. */
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

/**
 * The two nodes of a test.
 *
 * @param asked names; none: the first two that are ready
 */
async function testNodes(cluster: Cluster, asked: readonly string[]): Promise<readonly [TestNode, TestNode]> {
  const nodes = (await cluster.list(NODES)).map((raw) => ({ raw, node: nodeIn(raw) }));
  const names = nodes.map(({ node }) => node.name);
  const odd = asked.find((name) => !names.includes(name));
  if (odd !== undefined) throw noSuchNode("node", odd, names);
  const ready = nodes
    .filter(({ raw }) => isReady(raw) && valueAt(raw, "spec", "unschedulable") !== true)
    .map(({ node }) => node);
  const wanted =
    asked.length > 0 ? asked.flatMap((name) => nodes.find((one) => one.node.name === name)?.node ?? []) : ready;
  const [here, there] = wanted;
  if (here !== undefined && there !== undefined) return [here, there];
  throw new CommandFailure(
    `two nodes are needed that are ready; found: ${wanted.map(({ name }) => name).join(", ") || "none"}`,
  );
}

function nodeIn(raw: unknown): TestNode {
  const listed = itemsOf(valueAt(raw, "status", "addresses")).map(fieldsOf);
  const own = listed.flatMap(({ type, address }): [IPFamily, string][] => {
    const text = stringOf(address) ?? "";
    return type === "InternalIP" && parseAddress(text) !== undefined ? [[familyOf(text), text]] : [];
  });
  return {
    name: nameOf(raw),
    addresses: Object.fromEntries(own.reverse()),
  };
}

/** Alongside the bundle; from the sources: where the bundle is built. */
const SCRIPT = new URL(
  import.meta.url.endsWith(".ts") ? "../../../dist/connectivity-pod.js" : "./connectivity-pod.js",
  import.meta.url,
);

/** What servers and clients run. */
async function podScript(): Promise<string> {
  try {
    return await readFile(SCRIPT, "utf8");
  } catch (error) {
    throw new CommandFailure(`the pods' program is missing from this installation: ${errorText(error)}`, {
      cause: error,
    });
  }
}
