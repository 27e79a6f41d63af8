/** The built agent as a process: which file it is, what it is given, and how it is started. */

import { access, cp, mkdir, mkdtemp, rename, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import type { NetworkNamespace } from "@fairlead/kernel/netns";
import type { RawObject } from "@fairlead/testkit";
import { execa } from "execa";
import { stringify } from "yaml";
import { DIE_WITH_PARENT } from "./support/processes.ts";
import { folderPrefix } from "./support/run-inventory.ts";
import { now } from "./support/wait-until.ts";

export interface AgentProcess {
  readonly pid: number;
  /** Everything that it has logged so far. */
  log(): string;
  /** How it ended; never rejects. */
  readonly ended: Promise<AgentEnd>;
  /** Stops it and waits until it has ended. */
  stop(): Promise<AgentEnd>;
  /** kill -9 */
  kill(): Promise<AgentEnd>;
}

export interface AgentSettings {
  /** Default: `agentFile`. */
  readonly bundle?: string;
  readonly flags: readonly string[];
  /** A program, with arguments, that execs what follows. */
  readonly behind?: readonly string[];
  /** Alongside the environment of this process. */
  readonly env?: Readonly<Record<string, string>>;
}

/** Starts the agent inside a namespace, or behind whatever else its prefix says. */
export function startAgent(
  namespace: Pick<NetworkNamespace, "argvPrefix" | "env">,
  { bundle = agentFile(), flags, behind = [], env = {} }: AgentSettings,
): AgentProcess {
  const argv = [...hardening(flags), process.execPath, bundle];
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

/** Names another bundle; in the environment, so that the processes of a run see it, too. */
export const AGENT_VARIABLE = "FAIRLEAD_AGENT";

/** The bundle that FAIRLEAD_AGENT names, undefined where it is empty or not set. */
export function namedAgent(): string | undefined {
  const { [AGENT_VARIABLE]: named = "" } = process.env;
  return named === "" ? undefined : named;
}

const built = fileURLToPath(new URL("../../apps/agent/dist/main.js", import.meta.url));

/** The agent to run: FAIRLEAD_AGENT, or what `pnpm build` makes. */
export function agentFile(): string {
  return namedAgent() ?? built;
}

export async function requireAgent(): Promise<void> {
  const file = agentFile();
  await access(file).catch(() => {
    throw new Error(`there is no agent at ${file}; build it with: pnpm --filter @fairlead/agent build`);
  });
}

/**
 * Copies what `pnpm build` made to a folder of its own, so that a build meanwhile does not change what runs. A
 * bundle that FAIRLEAD_AGENT names is taken where it is.
 */
export async function settleAgent(folder: string): Promise<string> {
  const named = namedAgent();
  if (named !== undefined) return named;
  await cp(dirname(built), folder, { recursive: true });
  await writeFile(join(folder, "package.json"), JSON.stringify({ type: "module" }));
  return join(folder, basename(built));
}

/** A folder of its own for one agent: the objects that it follows, and its state. */
export interface AgentFolder {
  readonly path: string;
  /** The folder for `--manifests`. */
  readonly manifests: string;
  /** The folder for `--state-dir`. */
  readonly state: string;
  /** Puts the objects in place of those before, in one step. Gives the moment, in milliseconds since the epoch. */
  write(objects: readonly RawObject[]): Promise<number>;
  remove(): Promise<void>;
}

export async function agentFolder(objects: readonly RawObject[]): Promise<AgentFolder> {
  const path = await mkdtemp(join(tmpdir(), `${folderPrefix}-`));
  const manifests = join(path, "manifests");
  await mkdir(manifests);
  const write = async (next: readonly RawObject[]) => {
    const unseen = join(manifests, ".objects.yaml.new");
    await writeFile(unseen, next.map((object) => stringify(object)).join("---\n"));
    const at = now();
    await rename(unseen, join(manifests, "objects.yaml"));
    return at;
  };
  await write(objects);
  return {
    path,
    manifests,
    state: join(path, "state"),
    write,
    remove: () => rm(path, { recursive: true, force: true }),
  };
}

interface AgentEnd {
  readonly exitCode: number | undefined;
  readonly signal: string | undefined;
  readonly log: string;
}

/** Set in the environment: agents run as the manifests of deploy/ have them. */
const { FAIRLEAD_HARDENED = "" } = process.env;

/**
 * First what the overlay's init container does, with all rights; then a root and kernel settings that are read-only,
 * all but the state folder, and NET_ADMIN and NET_RAW only. The process stays the same one.
 */
const SCRIPT = `set -eu
state=$1
shift
mkdir -p "$state"
"$@" --init-only
mount --make-rprivate /
mount --bind "$state" "$state"
mount --bind /proc/sys /proc/sys
mount -o remount,bind,ro /proc/sys
mount -o remount,bind,ro /
if (: >/etc/fairlead-wrote-this) 2>/dev/null; then echo "the root is not read-only" >&2; exit 1; fi
exec setpriv --pdeathsig KILL --no-new-privs --bounding-set=-all,+net_admin,+net_raw --inh-caps=-all "$@"
`;

const STATE_DIR = "--state-dir=";

/** What is put before the agent with these flags: nothing, unless FAIRLEAD_HARDENED is set. */
function hardening(flags: readonly string[]): readonly string[] {
  if (FAIRLEAD_HARDENED === "" || flags.includes("--cleanup")) return [];
  const state = flags.find((flag) => flag.startsWith(STATE_DIR))?.slice(STATE_DIR.length);
  if (state === undefined) throw new Error("a hardened agent needs --state-dir: it may write nowhere else");
  return ["unshare", "--mount", "--", "sh", "-c", SCRIPT, "sh", state];
}
