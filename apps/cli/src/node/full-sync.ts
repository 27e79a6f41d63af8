import { errorText } from "@fairlead/base";
import { CommandError, nodeLockProcess, type Runner } from "@fairlead/kernel";
import { CommandFailure } from "../frame/errors.ts";
import { FULL_SYNC } from "./calls.ts";

/**
 * Tells the agent of this host to do a full sync.
 *
 * @param instance its --service-proxy-name; empty: the first one's
 * @throws CommandFailure when there is no agent, or it may not be notified
 */
export async function tellOwnAgent(instance: string): Promise<void> {
  const pid = await nodeLockProcess(instance);
  if (pid === undefined) {
    throw new CommandFailure(
      "no agent of Fairlead is seen on this host (as root, in the host's network and process namespaces); other proxies cannot be asked",
    );
  }
  try {
    process.kill(pid, "SIGUSR2");
  } catch (error) {
    throw new CommandFailure(`cannot signal process ${pid}: ${errorText(error)}`, { cause: error });
  }
}

/**
 * Has the `fairlead` in an agent's pod notify that agent: a user who may start programs there may do so.
 *
 * @param pod starts programs in the pod
 * @param instance as in `tellOwnAgent`
 * @throws CommandFailure when there is no `fairlead`, or it does not see its agent
 */
export async function tellPodsAgent(pod: Runner, instance: string): Promise<void> {
  try {
    await pod.run(["fairlead", FULL_SYNC, ...(instance === "" ? [] : [instance])]);
  } catch (error) {
    if (!(error instanceof CommandError)) throw error;
    const why = error.stderr || error.message;
    throw new CommandFailure(`the agent of that node cannot be asked, it takes Fairlead's image: ${why}`, {
      cause: error,
    });
  }
}
