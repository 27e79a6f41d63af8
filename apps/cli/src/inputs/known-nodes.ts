import type { NodeState } from "@fairlead/core";
import type { Context } from "../frame/context.ts";
import type { OptionValues } from "../frame/options.ts";
import { type Agents, agentPods } from "../node/agent-pods.ts";
import type { sourceOptions } from "./cluster-options.ts";
import { Refused } from "./server-failure.ts";
import { allNodes } from "./source.ts";

/**
 * All Nodes, in the order of their names. Without the right to list them those that agents run on, of which no more is
 * known: undefined.
 *
 * @throws CommandFailure when neither may be read
 */
export async function knownNodes(
  options: OptionValues<typeof sourceOptions>,
  agents: Agents,
  context: Context,
): Promise<ReadonlyMap<string, NodeState | undefined>> {
  try {
    return await allNodes(options, context);
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    const pods = await agentPods(agents).catch(() => {
      throw error;
    });
    context.warn(`only nodes with an agent are known: ${error.message}`);
    return new Map([...pods.keys()].sort().map((name) => [name, undefined]));
  }
}
