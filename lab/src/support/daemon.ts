import type { Argv } from "@fairlead/kernel";
import type { NetworkNamespace } from "@fairlead/kernel/netns";
import { execa } from "execa";

/** A process that runs in the background until it is stopped, or until this process ends in whatever way. */
export interface Daemon {
  readonly name: string;
  readonly pid: number;
  /** How it ended, in words; never rejects. */
  readonly ended: Promise<string>;
  /** Resolves once it is gone. May be called twice. */
  stop(signal?: "SIGTERM" | "SIGKILL"): Promise<void>;
}

export interface DaemonSettings {
  readonly name: string;
  readonly argv: Argv;
  /** Its output is appended. */
  readonly logFile: string;
  readonly env?: Readonly<Record<string, string>>;
}

/** Also a `kill -9` of this process takes them down. */
const DIE_WITH_PARENT = ["setpriv", "--pdeathsig", "KILL"];

const PATIENCE_MS = 3_000;

/** @throws Error when it cannot be started */
export async function startDaemon(namespace: NetworkNamespace, settings: DaemonSettings): Promise<Daemon> {
  const { name, argv, logFile, env = {} } = settings;
  const output = { file: logFile, append: true };
  const [program = "nsenter", ...prefix] = namespace.argvPrefix;
  const child = execa(program, [...prefix, ...DIE_WITH_PARENT, ...argv], {
    env: { ...namespace.env, ...env },
    stdin: "ignore",
    stdout: output,
    stderr: output,
    reject: false,
  });
  const ended = child.then(({ exitCode, signal, shortMessage }) =>
    exitCode === 0 ? `${name} ended` : `${name} ended: ${shortMessage ?? signal ?? exitCode}`,
  );
  if (child.pid === undefined) throw new Error(await ended);
  const stop = async (signal: "SIGTERM" | "SIGKILL" = "SIGTERM") => {
    child.kill(signal);
    const late = setTimeout(() => child.kill("SIGKILL"), PATIENCE_MS);
    await ended;
    clearTimeout(late);
  };
  return { name, pid: child.pid, ended, stop };
}
