import { writeFile } from "node:fs/promises";
import { basename } from "node:path";
import { errorText } from "@fairlead/base";
import type { CommandInput, ExitCode } from "../../frame/command.ts";
import type { Context } from "../../frame/context.ts";
import { CommandFailure, UsageError } from "../../frame/errors.ts";
import { configurationOf, type WantedProxy } from "../../inputs/configuration.ts";
import { numberOf } from "../../inputs/number.ts";
import { eachNode } from "../../node/agent-ownership.ts";
import { bytesText } from "../../output/bytes.ts";
import { ArchiveWriter } from "../../sysdump/archive.ts";
import { FORMAT, type NodeEntry, PATHS, type SysdumpIndex } from "../../sysdump/dump.ts";
import { version } from "../../version.ts";
import { installedPages } from "./installed.ts";
import { type NodeFiles, nodeFiles } from "./node.ts";
import { type DumpedNodes, dumpedNodes } from "./nodes.ts";
import { type DumpedObjects, dumpedObjects } from "./objects.ts";
import type { sysdumpOptions } from "./options.ts";
import { readmeText } from "./readme.ts";
import { networkResources } from "./resources.ts";
import { verified } from "./verified.ts";

type Values = CommandInput<typeof sysdumpOptions>["options"];

/** Bytes of an archive. */
const MOST_BYTES = 50_000_000;
const SECONDS = 5;

export async function run({ options }: CommandInput<typeof sysdumpOptions>, context: Context): Promise<ExitCode> {
  if (options.live && options.on !== undefined) throw new UsageError("--live and --on: only one of them");
  const seconds = numberOf("node-timeout", options["node-timeout"]) ?? SECONDS;
  const { setup } = await configurationOf(options, anyProxy(options), context, { anyMode: true, lenient: true });
  const read = () => dumpedObjects(options, setup, networkResources(setup), context);
  const found = await context.progress("reading objects", read);
  const asked = await dumpedNodes(options, found.nodes, seconds * 1_000, context);
  const answers = await answersOf(asked, seconds * 1_000, context);
  const file = options["output-file"] ?? `fairlead-sysdump-${stampOf(new Date())}.tar.gz`;
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

/** Only its owner may read it. */
async function written(file: string, bytes: Buffer): Promise<void> {
  try {
    await writeFile(file, bytes, { mode: 0o600, flag: "wx" });
  } catch (error) {
    const exists = error instanceof Error && "code" in error && error.code === "EEXIST";
    const why = exists ? "the file exists; choose another name" : errorText(error);
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
