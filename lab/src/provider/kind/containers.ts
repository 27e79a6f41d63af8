import { createRunner, type Runner } from "@fairlead/kernel";
import type { NetworkNamespace } from "@fairlead/kernel/netns";
import { waitUntil } from "../../agent/wait-until.ts";
import { firstProcessIn } from "../../support/processes.ts";

/** The network of a container that runs on this machine, seen from outside of it. */
export interface ContainerNetwork {
  /** Ends with the container; disposing of it does nothing. */
  readonly namespace: NetworkNamespace;
  /** Runs this machine's programs in it. */
  readonly runner: Runner;
}

const START_MS = 90_000;

/**
 * @param group a part of its control group's name that no other container has
 * @throws Error when it does not start
 */
export async function containerNetwork(group: string): Promise<ContainerNetwork> {
  const pid = await waitUntil(`a process in ${group}`, START_MS, () => firstProcessIn(group));
  return networkOf(pid);
}

/** The network that a process is in. */
export function networkOf(pid: number): ContainerNetwork {
  const nothing = async () => {};
  const namespace: NetworkNamespace = {
    pid,
    as: "root",
    argvPrefix: ["nsenter", "-t", String(pid), "-n", "--"],
    env: { XTABLES_LOCKFILE: `/proc/${pid}/ns/net` },
    dispose: nothing,
    [Symbol.asyncDispose]: nothing,
  };
  return { namespace, runner: createRunner({ prefix: namespace.argvPrefix, env: namespace.env }) };
}
