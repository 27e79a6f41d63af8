import { errorText } from "@fairlead/base";
import { type Holder, startHolder } from "./holder.ts";
import { userNamespaceHint } from "./user-namespaces.ts";

/**
 * A network namespace that lives as long as one process: no name in /run/netns, nothing left behind when the process
 * that made it dies in whatever way. Its loopback interface is up and it leads nowhere.
 */
export interface NetworkNamespace {
  /** The process that holds it, for `ip link set … netns PID` and /proc/PID. */
  readonly pid: number;
  /** root: made with the caller's own rights. user: in a user namespace of its own, where the caller is root. */
  readonly as: "root" | "user";
  /** Put before an argv, it runs inside: `["nsenter", …, "--"]`. */
  readonly argvPrefix: readonly string[];
  /** For processes inside: the legacy tools lock this namespace only, not the whole machine. */
  readonly env: Readonly<Record<string, string>>;
  /** Ends the holder; the namespace goes with the last process in it. May be called twice. */
  dispose(): Promise<void>;
  /** As `dispose`. */
  [Symbol.asyncDispose](): Promise<void>;
}

/** How a namespace is made. */
export interface NamespaceOptions {
  /**
   * With mounts and processes of its own, which end with it, whatever they have become (root only). Default false.
   */
  readonly whole?: boolean;
  /** In a user namespace of its own, also for root: without rights over the machine. Default: only for a plain user. */
  readonly user?: boolean;
  /** Makes it alongside this one, so that interfaces can move between the two; only a plain user needs to say. */
  readonly beside?: NetworkNamespace;
}

/** Whether this machine lets this user make namespaces, or why not. */
export type NamespaceSupport =
  | { readonly ok: true; readonly as: "root" | "user" }
  | { readonly ok: false; readonly reason: string };

/**
 * Makes a network namespace: as root with `unshare -n`, else in a new user namespace with `unshare -Urn`.
 *
 * @throws Error that says why this machine allows neither
 */
export async function createNamespace(options: NamespaceOptions = {}): Promise<NetworkNamespace> {
  const failures: string[] = [];
  for (const { as, unshare, enter = [] } of options.whole ? [WHOLE] : unshareCommands(options)) {
    try {
      return describe({ as, enter }, await startHolder(unshare));
    } catch (error) {
      failures.push(errorText(error));
    }
  }
  // What unshare says of a user namespace ("write failed /proc/self/uid_map") does not say why.
  const hint = process.getuid?.() === 0 ? undefined : userNamespaceHint();
  throw new Error(
    `cannot create a network namespace: ${[...new Set([...failures, ...(hint === undefined ? [] : [hint])])].join("; ")}`,
  );
}

/** Whether `createNamespace` works here, and why not. Makes one to find out. */
export async function namespaceSupport(): Promise<NamespaceSupport> {
  try {
    const namespace = await createNamespace();
    await namespace.dispose();
    return { ok: true, as: namespace.as };
  } catch (error) {
    return { ok: false, reason: errorText(error) };
  }
}

interface UnshareCommand {
  readonly as: "root" | "user";
  readonly unshare: readonly string[];
  /** For nsenter, alongside the network. */
  readonly enter?: readonly string[];
}

/** The first process in it dies with `unshare`, and the kernel takes all others along. */
const WHOLE: UnshareCommand = {
  as: "root",
  unshare: ["unshare", "-n", "-m", "-p", "--fork", "--kill-child", "--mount-proc", "--"],
  enter: ["-m", "-p"],
};

function unshareCommands({
  beside,
  user: asUser = process.getuid?.() !== 0,
}: NamespaceOptions): readonly UnshareCommand[] {
  const root: UnshareCommand = { as: "root", unshare: ["unshare", "-n", "--"] };
  const user: UnshareCommand = { as: "user", unshare: ["unshare", "-Urn", "--"] };
  if (beside?.as === "user") return [{ as: "user", unshare: [...enterUser(beside.pid), "--", ...root.unshare] }];
  if (beside?.as === "root") return [root];
  return asUser ? [user] : [root, user];
}

function describe({ as, enter }: Required<Pick<UnshareCommand, "as" | "enter">>, holder: Holder): NetworkNamespace {
  const nsenter = as === "root" ? ["nsenter", "-t", String(holder.pid)] : enterUser(holder.pid);
  return {
    pid: holder.pid,
    as,
    argvPrefix: [...nsenter, "-n", ...enter, "--"],
    // flock() works on the namespace's own inode: a lock for each namespace without a file to leave behind.
    env: { XTABLES_LOCKFILE: `/proc/${holder.pid}/ns/net` },
    dispose: holder.stop,
    [Symbol.asyncDispose]: holder.stop,
  };
}

function enterUser(pid: number): readonly string[] {
  return ["nsenter", "-U", "--preserve-credentials", "-t", String(pid)];
}
