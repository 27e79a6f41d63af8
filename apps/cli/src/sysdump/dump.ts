/** An archive as commands read it, in the place of a cluster and a kernel. */

import { readFile } from "node:fs/promises";
import { errorText, fieldsOf, itemsOf, stringOf } from "@fairlead/base";
import { type NodeState, parseNodeState } from "@fairlead/inspect";
import { CommandError, type Runner } from "@fairlead/kernel";
import type { Context, HttpAnswer } from "../frame/context.ts";
import { CommandFailure, UsageError } from "../frame/errors.ts";
import { readArchive } from "./archive.ts";

/** The files of an archive, and what commands ask of a node, answered from them. */
export class Sysdump {
  readonly #files: ReadonlyMap<string, string>;
  readonly #file: string;
  /** Those of which anything is here. */
  readonly nodes: readonly string[];

  /** @param file for messages */
  constructor(file: string, files: ReadonlyMap<string, string>) {
    this.#file = file;
    this.#files = files;
    const index = fieldsOf(this.#json(PATHS.index));
    const { format, version } = index;
    if (format !== FORMAT) {
      throw new CommandFailure(
        `--sysdump=${file}: archive format ${format} is not supported (supported: ${FORMAT}); ` +
          `read it with fairlead ${stringOf(version) ?? "of the version that made it"}`,
      );
    }
    this.nodes = itemsOf(index["nodes"]).flatMap((one) => {
      const { name, answered } = fieldsOf(one);
      return answered === true ? (stringOf(name) ?? []) : [];
    });
  }

  get objects(): Uint8Array {
    return Buffer.from(this.#files.get(PATHS.objects) ?? "[]");
  }

  state(node: string): NodeState {
    const text = this.#files.get(PATHS.state(node));
    if (text === undefined) throw new CommandFailure(`--sysdump=${this.#file}: nothing of the kernel of ${node}`);
    try {
      return parseNodeState(text);
    } catch (error) {
      throw new CommandFailure(`--sysdump=${this.#file}: ${PATHS.state(node)}: ${errorText(error)}`, { cause: error });
    }
  }

  /** Answers with what the node's agent answered; the port decides nothing. */
  ask(node: string): (port: number, path: string) => Promise<HttpAnswer> {
    return async (_port, path) => {
      const text = this.#files.get(PATHS.page(node, path));
      if (text === undefined) throw new CommandFailure(`the archive has no ${path} of ${node}`);
      return { status: 200, text };
    };
  }

  #json(path: string): unknown {
    const text = this.#files.get(path);
    try {
      return text === undefined ? undefined : JSON.parse(text);
    } catch (error) {
      throw new CommandFailure(`--sysdump=${this.#file}: ${path} is not JSON`, { cause: error });
    }
  }
}

export async function openSysdump(file: string): Promise<Sysdump> {
  let content: Uint8Array;
  try {
    content = await readFile(file);
  } catch (error) {
    throw new CommandFailure(`--sysdump=${file}: ${errorText(error)}`, { cause: error });
  }
  return new Sysdump(file, await readArchive(file, content));
}

/** Options of commands that read a dump in the place of a cluster and a kernel. */
interface DumpableOptions {
  readonly sysdump: string | undefined;
  readonly file: readonly string[];
  readonly kubeconfig: string | undefined;
  readonly context: string | undefined;
  readonly server: string | undefined;
  readonly as: string | undefined;
  readonly node: string | undefined;
  readonly live: boolean;
  readonly on?: string | undefined;
  readonly rules?: string | undefined;
}

/** A command's options, and what it may use, so that it looks at this host: one that answers what a dump says. */
interface Replayed<Options> {
  readonly options: Options;
  readonly context: Context;
}

/** What a command is given in the place of its options and context. Without --sysdump these themselves. */
export async function fromSysdump<Options extends DumpableOptions>(
  options: Options,
  context: Context,
): Promise<Replayed<Options>> {
  const { sysdump: file } = options;
  if (file === undefined) return { options, context };
  noOtherSource(options);
  const dump = await openSysdump(file);
  return replayedOn(dump, chosenNode(dump, options), options, context);
}

export function noOtherSource({ file, kubeconfig, context, server, as, live, rules }: DumpableOptions): void {
  const others = Object.entries({ file: file.length > 0 || undefined, kubeconfig, context, server, as, rules });
  const given = others.filter(([, value]) => value !== undefined).map(([name]) => `--${name}`);
  const left = live ? [...given, "--live"] : given;
  if (left.length > 0) throw new UsageError(`--sysdump: leave out ${left.join(" and ")}; the archive has all of it`);
}

/** An archive has no programs. */
const NO_PROGRAMS: Runner = {
  run: (argv) => Promise.reject(new CommandError({ argv, reason: "not-found" })),
  // biome-ignore lint/correctness/useYield: it fails before it gives anything
  async *stream(argv) {
    throw new CommandError({ argv, reason: "not-found" });
  },
};

export function replayedOn<Options extends DumpableOptions>(
  dump: Sysdump,
  node: string,
  options: Options,
  context: Context,
): Replayed<Options> {
  return {
    options: { ...options, sysdump: undefined, file: ["-"], live: true, on: undefined, node },
    context: {
      ...context,
      isArchive: true,
      stateHere: async () => dump.state(node),
      runner: NO_PROGRAMS,
      askHere: dump.ask(node),
      readStandardInput: async () => dump.objects,
    },
  };
}

/** The format of archives; what reads them refuses others. Format 1 had what programs printed. */
export const FORMAT = 2;

/** Where files are in an archive. */
export const PATHS = {
  index: "index.json",
  readme: "README.md",
  objects: "objects.json",
  log: (node: string) => `nodes/${node}/log.txt`,
  previousLog: (node: string) => `nodes/${node}/previous-log.txt`,
  /** A `NodeState`. */
  state: (node: string) => `nodes/${node}/state.json`,
  page: (node: string, page: string) => `nodes/${node}/agent${page}.txt`,
  verify: (node: string) => `nodes/${node}/verify.json`,
} as const;

/** Something that could not be read, or was too large. */
export interface Missing {
  readonly what: string;
  readonly why: string;
}

export interface NodeEntry {
  readonly name: string;
  /** Whether anything of its kernel or its agent is here. */
  readonly answered: boolean;
  readonly missing: readonly Missing[];
}

/** `index.json`; only JSON values. */
export interface SysdumpIndex {
  readonly format: typeof FORMAT;
  /** Of the `fairlead` that made it. */
  readonly version: string;
  /** ISO 8601. */
  readonly made: string;
  readonly nodes: readonly NodeEntry[];
  /** Of the cluster's objects. */
  readonly missing: readonly Missing[];
}

function chosenNode({ nodes }: Sysdump, { on, node, sysdump }: DumpableOptions): string {
  const asked = on ?? node;
  const [only] = nodes;
  if (asked === undefined && only !== undefined && nodes.length === 1) return only;
  if (asked !== undefined && nodes.includes(asked)) return asked;
  const there = `there are: ${nodes.join(", ")}`;
  if (asked === undefined) throw new UsageError(`--sysdump=${sysdump}: name a node with --on; ${there}`);
  throw new UsageError(`--on=${asked}: the archive has nothing of that node; ${there}`);
}
