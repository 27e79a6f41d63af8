import type { Context } from "../frame/context.ts";
import { UsageError } from "../frame/errors.ts";
import { NO_PROGRAMS, type Sysdump } from "./dump.ts";
import { openSysdump } from "./open.ts";

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
export interface Replayed<Options> {
  readonly options: Options;
  readonly context: Context;
}

/**
 * What a command is given in the place of its options and context. Without --sysdump these themselves.
 *
 * @throws UsageError for an option that names another source or kernel; CommandFailure when the archive cannot be read
 */
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

/** @throws UsageError */
export function noOtherSource({ file, kubeconfig, context, server, as, live, rules }: DumpableOptions): void {
  const others = Object.entries({ file: file.length > 0 || undefined, kubeconfig, context, server, as, rules });
  const given = others.filter(([, value]) => value !== undefined).map(([name]) => `--${name}`);
  const left = live ? [...given, "--live"] : given;
  if (left.length > 0) throw new UsageError(`--sysdump: leave out ${left.join(" and ")}; the archive has all of it`);
}

/** The options and the context with which a command looks at one node of a dump. */
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
      stateHere: async () => dump.state(node),
      runner: NO_PROGRAMS,
      askHere: dump.ask(node),
      readStandardInput: async () => dump.objects,
    },
  };
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
