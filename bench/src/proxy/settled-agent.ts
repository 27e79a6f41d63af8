import { join } from "node:path";
import { createRunner } from "@fairlead/kernel";
import { settleAgent } from "@fairlead/lab/agent";
import { AGENT_NODE_OPTIONS } from "@fairlead/tooling/agent-node";

/** The agent that is measured. */
export interface SettledAgent {
  readonly bundle: string;
  /** What V8 has compiled of it, for NODE_COMPILE_CACHE. */
  readonly compiled: string;
}

/**
 * Copies the built agent, so that who builds meanwhile neither changes what is measured nor ends it: native code that
 * is written over while it is mapped takes its process down. Compiled as it is when the image is built.
 */
export async function settledAgent(folder: string): Promise<SettledAgent> {
  const bundle = await settleAgent(join(folder, "agent"));
  const compiled = join(folder, "compiled");
  const runner = createRunner({ env: { NODE_OPTIONS: "", NODE_COMPILE_CACHE: compiled } });
  await runner.run([process.execPath, ...AGENT_NODE_OPTIONS, bundle, "--version"]);
  return { bundle, compiled };
}
