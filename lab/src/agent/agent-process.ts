import type { NetworkNamespace } from "@fairlead/kernel/netns";
import { execa } from "execa";
import { agentFile } from "./agent-file.ts";
import { hardening } from "./hardened.ts";

/** A running agent. */
export interface AgentProcess {
  readonly pid: number;
  /** Everything that it has logged so far. */
  log(): string;
  /** How it ended; never rejects. */
  readonly ended: Promise<AgentEnd>;
  /** Tells it to stop and waits until it did. */
  stop(): Promise<AgentEnd>;
  /** kill -9 */
  kill(): Promise<AgentEnd>;
}

interface AgentEnd {
  readonly exitCode: number | undefined;
  readonly signal: string | undefined;
  readonly log: string;
}

export interface AgentSettings {
  /** Default: the agent itself. */
  readonly program?: string;
  /** Default: `agentFile`. */
  readonly bundle?: string;
  readonly flags: readonly string[];
  /** A program, with arguments, that execs what follows. */
  readonly behind?: readonly string[];
  /** Alongside the environment of this process. */
  readonly env?: Readonly<Record<string, string>>;
}

/** Also a `kill -9` of this process takes it down. */
const DIE_WITH_PARENT = ["setpriv", "--pdeathsig", "KILL"];

/** Starts the agent inside a namespace, or behind whatever else its prefix says. */
export function startAgent(
  namespace: Pick<NetworkNamespace, "argvPrefix" | "env">,
  { program: other, bundle = agentFile(), flags, behind = [], env = {} }: AgentSettings,
): AgentProcess {
  const argv = other === undefined ? [...hardening(flags), process.execPath, bundle] : [other];
  const [program = "nsenter", ...prefix] = namespace.argvPrefix;
  const child = execa(program, [...prefix, ...DIE_WITH_PARENT, ...behind, ...argv, ...flags], {
    env: { ...namespace.env, NODE_OPTIONS: "", ...env },
    stdin: "ignore",
    all: true,
    buffer: false,
    reject: false,
  });
  let log = "";
  child.all.setEncoding("utf8");
  child.all.on("data", (piece: string) => {
    log += piece;
  });
  const ended = child.then(({ exitCode, signal }) => ({ exitCode, signal, log }));
  const end = (signal: "SIGTERM" | "SIGKILL") => {
    child.kill(signal);
    return ended;
  };
  return {
    pid: child.pid ?? 0,
    log: () => log,
    ended,
    stop: () => end("SIGTERM"),
    kill: () => end("SIGKILL"),
  };
}
