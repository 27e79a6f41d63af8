import { access } from "node:fs/promises";
import type { NetworkNamespace } from "@fairlead/kernel/netns";
import type { Host, RawObject } from "@fairlead/testkit";

export interface Ask {
  readonly from: Host;
  readonly to: string;
  readonly port: number;
  readonly count: number;
  /** Default: the sender's own address. */
  readonly source?: string;
}

/** What came of one request. */
export interface Reply {
  /** When it was known, in milliseconds since the epoch. */
  readonly at: number;
  /** Name of the pod that answered; `untouched`: it arrived as it was sent, where no pod is. */
  readonly end: string;
  /** Whom the pod saw as the sender. */
  readonly seenAs?: string;
}

/** One line of the table. */
export interface Finding {
  readonly name: string;
  readonly request: string;
  readonly seen: string;
  readonly ok: boolean;
}

export type Check = (stage: DemoEnvironment) => Promise<readonly Finding[]>;

/** Where the demo plays: the real kernel, one in memory, or local ports. */
export interface DemoEnvironment {
  /** What it is, in words. */
  readonly ground: string;
  readonly real: boolean;
  /** Where the node serves node ports, of its two addresses and 127.0.0.1. */
  readonly nodePortsAt: readonly string[];
  /** How it proves what it shows, for the closing line. */
  readonly proof: string;
  /** What can be seen there; default: all checks. */
  readonly checks?: readonly Check[];
  /** How long a change may take, in milliseconds, before it counts as never followed. */
  readonly patienceMs: number;
  /** Puts these objects in place of those before. Gives the moment, in milliseconds since the epoch. */
  change(objects: readonly RawObject[]): Promise<number>;
  ask(ask: Ask): Promise<readonly Reply[]>;
  /** Every rule of both families, as the mode's own tool prints them. */
  rules(): Promise<readonly string[]>;
  /** The folder of manifests that the agent follows; absent: there is none. */
  readonly manifests?: string;
  /** The node that has the rules; absent: there is none, or no kernel. */
  readonly node?: { readonly namespace: NetworkNamespace; readonly mode: string };
  /** How to look around in it while it is there; nothing where there is nothing to enter. */
  readonly tour: readonly string[];
  /** Ends it. Gives what was left behind: nothing, if all is well. */
  close(): Promise<readonly string[]>;
}

/** Of these processes and this folder, what is still there. */
export async function leftovers(pids: readonly number[], folder: string): Promise<readonly string[]> {
  const processes = pids.filter(isRunning).map((pid) => `process ${pid}`);
  const there = await access(folder).then(
    () => [folder],
    () => [],
  );
  return [...processes, ...there];
}

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}
