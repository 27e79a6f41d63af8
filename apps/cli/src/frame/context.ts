import type { NodeState, StatePart } from "@fairlead/inspect";
import type { Runner } from "@fairlead/kernel";
import type { Style } from "./terminal.ts";

export interface HttpAnswer {
  readonly status: number;
  readonly text: string;
}

/** Everything outside of a command that it may use; tests give their own. */
export interface Context {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly out: (text: string) => void;
  readonly warn: (line: string) => void;
  /** Colors of standard output: none where it is not a terminal or NO_COLOR is set. */
  readonly style: Style;
  readonly readStandardInput: () => Promise<Uint8Array>;
  /** Runs `work` and reports on standard error what takes longer than a second. */
  readonly progress: <T>(what: string, work: () => Promise<T>) => Promise<T>;
  readonly askHere: (port: number, path: string) => Promise<HttpAnswer>;
  /** What the kernel of this host holds: these parts, or all. */
  readonly stateHere: (parts?: readonly StatePart[]) => Promise<NodeState>;
  /** What is asked is an archive of another time: nothing stands in for what it lacks. */
  readonly isArchive?: true;
  readonly runner: Runner;
  /** Aborts with SIGINT, SIGTERM and SIGHUP, and when nothing reads standard output anymore. */
  readonly signal: AbortSignal;
  /** Runs work that ends by itself when `signal` aborts; any other work is ended at once then, wherever it is. */
  readonly untilStopped: <T>(work: () => Promise<T>) => Promise<T>;
}
