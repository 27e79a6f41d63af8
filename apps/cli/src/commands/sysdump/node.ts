import { errorText } from "@fairlead/base";
import { type NodeState, nodeStateText, STATE_PARTS, type StatePart } from "@fairlead/inspect";
import { type Missing, PATHS } from "../../sysdump/dump.ts";
import { keptPage, PAGE_PATHS, shareableState, withoutSecrets } from "../../sysdump/kept-node.ts";

/** How a node is asked. Each may throw. */
export interface DumpedNode {
  readonly name: string;
  readonly state: (parts: readonly StatePart[], signal: AbortSignal) => Promise<NodeState>;
  /** A page of its agent. */
  readonly page: (path: string) => Promise<string>;
  /** The end of its agent's log; absent: there is no way to it. */
  readonly log?: (previous: boolean) => Promise<string>;
}

/** The files of one node, by their paths, the most needed first. */
export interface NodeFiles {
  readonly files: ReadonlyMap<string, string>;
  readonly missing: readonly Missing[];
}

/** Asks a node for everything at once; what is not there when the signal aborts is missing. */
export async function nodeFiles(node: DumpedNode, signal: AbortSignal): Promise<NodeFiles> {
  const files = new Map<string, string>();
  const missing: Missing[] = [];
  const part = async (what: string, work: () => Promise<void>): Promise<void> => {
    try {
      await untilAborted(work(), signal);
    } catch (error) {
      missing.push({ what, why: withoutSecrets(errorText(error)) });
    }
  };
  await Promise.all([
    part("kernel", async () => {
      const state = shareableState(await node.state([...STATE_PARTS, "connections"], signal));
      files.set(PATHS.state(node.name), nodeStateText(state));
      for (const [what, why] of Object.entries(state.problems)) missing.push({ what: `kernel: ${what}`, why });
    }),
    ...PAGE_PATHS.map((path) =>
      part(`agent ${path}`, async () => {
        const kept = keptPage(path, await node.page(path));
        if (kept === undefined) throw new Error("its form is not known");
        files.set(PATHS.page(node.name, path), kept);
      }),
    ),
    ...logParts(node, files, part),
  ]);
  return { files, missing };
}

function logParts(
  { name, log }: DumpedNode,
  files: Map<string, string>,
  part: (what: string, work: () => Promise<void>) => Promise<void>,
): readonly Promise<void>[] {
  if (log === undefined) return [];
  return [
    part("log", async () => void files.set(PATHS.log(name), withoutSecrets(await log(false)))),
    // Most containers are the first of their pod.
    log(true).then(
      (text) => void (text !== "" && files.set(PATHS.previousLog(name), withoutSecrets(text))),
      () => undefined,
    ),
  ];
}

function untilAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const late = () => reject(new Error("no answer in time"));
    if (signal.aborted) late();
    signal.addEventListener("abort", late, { once: true });
    work.then(resolve, reject).finally(() => signal.removeEventListener("abort", late));
  });
}
