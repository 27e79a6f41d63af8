/** Writes an archive: objects, nodes, what is missing, and what verify finds. */

import { existsSync } from "node:fs";
import { access, constants, writeFile } from "node:fs/promises";
import { basename, dirname } from "node:path";
import { errorText } from "@fairlead/base";
import type { sysdumpOptions } from "../facts/clusters.ts";
import { type CommandInput, type ExitCode, numberOf } from "../frame/command.ts";
import type { Context } from "../frame/context.ts";
import { CommandFailure, UsageError } from "../frame/errors.ts";
import { bytesText } from "../frame/text.ts";
import { configurationOf, type WantedProxy } from "../inputs/configuration.ts";
import type { ClusterValues } from "../inputs/planned.ts";
import { eachNode } from "../node/agent-endpoint.ts";
import { ArchiveWriter } from "../sysdump/archive.ts";
import { FORMAT, type Missing, type NodeEntry, PATHS, Sysdump, type SysdumpIndex } from "../sysdump/dump.ts";
import { keptPage } from "../sysdump/kept-node.ts";
import { version } from "../version.ts";
import { type DumpedNodes, dumpedNodes, type NodeFiles, nodeFiles } from "./sysdump-nodes.ts";
import { type DumpedObjects, dumpedObjects, networkResources } from "./sysdump-objects.ts";
import { reportsFromArchive } from "./verify/look.ts";

const SECONDS = 5;

export async function run({ options }: CommandInput<typeof sysdumpOptions>, context: Context): Promise<ExitCode> {
  if (options.live && options.on !== undefined) throw new UsageError("--live and --on are mutually exclusive");
  const seconds = numberOf("node-timeout", options["node-timeout"]) ?? SECONDS;
  const file = options["output-file"] ?? `fairlead-sysdump-${stampOf(new Date())}.tar.gz`;
  await demandWritable(file);
  const { setup } = await configurationOf(options, anyProxy(options), context, { anyMode: true, lenient: true });
  const read = () => dumpedObjects(options, setup, networkResources(setup), context);
  const found = await context.progress("reading objects", read);
  const asked = await dumpedNodes(options, found.nodes, seconds * 1_000, context);
  const answers = await answersOf(asked, seconds * 1_000, context);
  const archive = await archiveOf(
    basename(file).replace(/\.(?:tar\.gz|tgz)$/, ""),
    found,
    asked,
    answers,
    options,
    context,
  );
  await written(file, archive.bytes);
  context.out(
    `${file}: ${bytesText(archive.bytes.length)}, ${nodesText(archive.index.nodes)}${missingText(archive.index)}; read it before you send it\n`,
  );
  for (const line of refusalsIn(archive.index)) context.warn(`not in the archive: ${line}`);
  return missingParts(archive.index) === 0 ? 0 : 1;
}

type Values = CommandInput<typeof sysdumpOptions>["options"];

/** Bytes of an archive. */
const MOST_BYTES = 50_000_000;

/** What the user may not read; the archive has the other reasons. */
function refusalsIn({ missing, nodes }: SysdumpIndex): ReadonlySet<string> {
  const all = [...missing, ...nodes.flatMap((node) => node.missing)];
  return new Set(all.flatMap(({ what, why }) => (why.includes(" may not ") ? [`${what}: ${why}`] : [])));
}

/** Which objects networks are learned from is the same on every node. */
function anyProxy({ live, on }: Values): WantedProxy {
  if (live) return { here: true };
  return on === undefined ? { any: true } : { on };
}

type Answers = ReadonlyMap<string, NodeFiles>;

async function answersOf({ nodes }: DumpedNodes, patienceMs: number, context: Context): Promise<Answers> {
  const answers = new Map<string, NodeFiles>();
  const byName = new Map(nodes.map((node) => [node.name, node]));
  const answer = async (name: string) => {
    const node = byName.get(name);
    if (node === undefined) return;
    if ("problem" in node) {
      answers.set(name, { files: new Map(), missing: [{ what: "agent", why: node.problem }] });
      return;
    }
    const signal = AbortSignal.any([context.signal, AbortSignal.timeout(patienceMs)]);
    answers.set(name, await nodeFiles(node, signal));
  };
  await context.progress(`asking ${byName.size} nodes`, () => eachNode([...byName.keys()], answer));
  return answers;
}

/** What is needed most comes first: what there is no room for is named as missing. */
async function archiveOf(
  name: string,
  found: DumpedObjects,
  asked: DumpedNodes,
  answers: Answers,
  options: Values,
  context: Context,
): Promise<{ readonly bytes: Buffer; readonly index: SysdumpIndex }> {
  const made = new Date();
  const archive = new ArchiveWriter(name, made, MOST_BYTES);
  const objects = `${JSON.stringify(found.objects, undefined, 1)}\n`;
  const missing = [...found.missing, ...asked.missing];
  const tooLarge = (what: string) => ({ what, why: `the archive would be larger than ${bytesText(MOST_BYTES)}` });
  if (!(await archive.add(PATHS.objects, objects))) missing.push(tooLarge(PATHS.objects));
  const nodes: NodeEntry[] = [];
  for (const [node, { files, missing: unread }] of [...answers].sort(([a], [b]) => (a < b ? -1 : 1))) {
    const answered = files.size > 0;
    const lacks = [...unread];
    const configured = await installedPages(node, files, options, context);
    const own = new Map([...files, ...configured].sort(([a], [b]) => rank(a) - rank(b)));
    if (own.has(PATHS.state(node))) {
      const work = () => verified(new Map([...own, [PATHS.objects, objects]]), node, options, context);
      const report = await context.progress(`verifying ${node}`, work);
      if ("text" in report) own.set(PATHS.verify(node), report.text);
      else lacks.push(report);
    }
    for (const [path, content] of own) if (!(await archive.add(path, content))) lacks.push(tooLarge(path));
    nodes.push({ name: node, answered, missing: lacks });
  }
  const index: SysdumpIndex = { format: FORMAT, version, made: made.toISOString(), nodes, missing };
  const first = {
    [PATHS.readme]: readmeText(index, name),
    [PATHS.index]: `${JSON.stringify(index, undefined, 2)}\n`,
  };
  return { bytes: await archive.end(first), index };
}

/** Logs are large and decide nothing. */
function rank(path: string): number {
  return /log\.txt$/.test(path) ? 1 : 0;
}

/** Before nodes are asked, which takes a while. */
async function demandWritable(file: string): Promise<void> {
  const why = existsSync(file) ? EXISTS : await access(dirname(file), constants.W_OK).then(() => undefined, errorText);
  if (why !== undefined) throw new CommandFailure(`--output-file=${file}: ${why}`);
}

const EXISTS = "the file exists; choose another name";

/** Only its owner may read it. */
async function written(file: string, bytes: Buffer): Promise<void> {
  try {
    await writeFile(file, bytes, { mode: 0o600, flag: "wx" });
  } catch (error) {
    const exists = error instanceof Error && "code" in error && error.code === "EEXIST";
    const why = exists ? EXISTS : errorText(error);
    throw new CommandFailure(`--output-file=${file}: ${why}`, { cause: error });
  }
}

function missingParts({ nodes, missing }: SysdumpIndex): number {
  return nodes.reduce((sum, node) => sum + node.missing.length, missing.length);
}

function missingText(index: SysdumpIndex): string {
  const count = missingParts(index);
  return count === 0 ? "" : `, ${count} ${count === 1 ? "part" : "parts"} missing (README.md in it says why)`;
}

function nodesText(nodes: readonly NodeEntry[]): string {
  const silent = nodes.filter(({ answered }) => !answered).map(({ name }) => name);
  const all = `${nodes.length - silent.length} of ${nodes.length} nodes answered`;
  return silent.length === 0 ? all : `${all} (not ${silent.join(", ")})`;
}

/** `2026-11-23T16-48-00Z`, which every file system takes. */
function stampOf(time: Date): string {
  return `${time.toISOString().slice(0, 19).replaceAll(":", "-")}Z`;
}

/**
 * The configuration of a node whose proxy does not serve it, as it is installed with or as the options say, in the form
 * of the page that is missing. None: it serves it, or nothing is known.
 */
async function installedPages(
  node: string,
  files: ReadonlyMap<string, string>,
  options: ClusterValues & { readonly live: boolean },
  context: Context,
): Promise<ReadonlyMap<string, string>> {
  const path = (page: string) => PATHS.page(node, page);
  if (files.size === 0 || files.has(path("/configz"))) return new Map();
  const quiet: Context = { ...context, warn: () => {}, progress: (_what, work) => work() };
  const wanted = options.live ? { here: true } : { on: node };
  try {
    const { setup } = await configurationOf(options, wanted, quiet, { anyMode: true });
    const { kubeProxyConfiguration, fairleadConfiguration } = setup.config;
    const answer = { "kubeproxy.config.k8s.io": kubeProxyConfiguration, "fairlead.dev": fairleadConfiguration };
    const kept = keptPage("/configz", JSON.stringify(answer));
    return kept === undefined
      ? new Map()
      : new Map([
          [path("/configz"), kept],
          [path("/proxyMode"), setup.config.mode],
        ]);
  } catch (error) {
    if (error instanceof CommandFailure) return new Map();
    throw error;
  }
}

/** What `fairlead verify` finds on a node, from nothing else than what the dump has of it. */
async function verified(
  files: ReadonlyMap<string, string>,
  node: string,
  options: ClusterValues,
  context: Context,
): Promise<{ readonly text: string } | Missing> {
  const index = JSON.stringify({ format: FORMAT, nodes: [{ name: node, answered: true }] });
  const dump = new Sysdump("", new Map([...files, [PATHS.index, index]]));
  const named = { ...options, sysdump: undefined, live: false };
  try {
    const reports = await reportsFromArchive(dump, node, named, { ...context, warn: () => {} });
    return { text: `${JSON.stringify(reports, undefined, 2)}\n` };
  } catch (error) {
    return { what: "verify", why: errorText(error) };
  }
}

function readmeText({ version, made, nodes, missing }: SysdumpIndex, archive: string): string {
  const answered = nodes.filter((node) => node.answered);
  const silent = nodes.filter((node) => !node.answered);
  return [
    `# ${archive}\n\nMade by fairlead ${version} at ${made}. ${answered.length} of ${nodes.length} nodes answered.\n`,
    ...(silent.length === 0 ? [] : [`\nNodes that did not answer: ${silent.map(({ name }) => name).join(", ")}\n`]),
    "\n## What is here\n\n",
    "| path | contents |\n| --- | --- |\n",
    ...CONTENTS.map(([path, contents]) => `| \`${path}\` | ${contents} |\n`),
    "\n## What is missing\n\n",
    ...missingLines("the cluster", missing),
    ...nodes.flatMap(({ name, missing: own }) => missingLines(name, own)),
    "\n## Look at it\n\n```sh\n",
    ...["explain NAMESPACE/SERVICE", "verify", "trace --from pod --to NAMESPACE/SERVICE", "console"].map(
      (command) => `fairlead ${command} --sysdump ${archive}.tar.gz --on ${answered[0]?.name ?? "NODE"}\n`,
    ),
    "```\n\n## What was left out\n\n",
    "Of objects only the fields are kept that Fairlead reads, of the configuration those that its schema has; a value that such a field\n",
    "cannot have is `invalid` here. There are no Secrets, no environment, no arguments of containers, no other annotations and labels, and\n",
    "nothing else of ConfigMaps. In logs, metrics and texts of the configuration, what looks like a key, a token or a password is replaced\n",
    "by `[left out]`, and so is each comment in rules of other programs. Addresses, names of objects and names of nodes are here. Read what\n",
    "you send.\n",
  ].join("");
}

const CONTENTS = [
  ["objects.json", "Services, EndpointSlices, Nodes, ServiceCIDRs and networks' objects, as manifests"],
  ["nodes/NODE/agent", "pages of the agent: /metrics, /configz, /proxyMode, /ownership, /livez"],
  [
    "nodes/NODE/state.json",
    "what the kernel holds: rules, tables, sets, virtual servers, addresses, devices, routes, affinity, settings, how many connections are tracked of each kind",
  ],
  ["nodes/NODE/verify.json", "what `fairlead verify` finds"],
  ["nodes/NODE/log.txt", "the end of the agent's log; previous-log.txt is that of the container before it"],
  ["index.json", "for programs"],
] as const;

function missingLines(of: string, missing: readonly Missing[]): readonly string[] {
  if (missing.length === 0) return [`- ${of}: nothing\n`];
  return missing.map(({ what, why }) => `- ${of}: ${what}: ${why.replaceAll(/\s+/g, " ")}\n`);
}
