import { mkdir } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { AGENT_VARIABLE, agentFile } from "../agent/agent-file.ts";
import type { GuestOptions } from "./boot.ts";

const ROOM = fileURLToPath(new URL("../..", import.meta.url));
const COMPILED = fileURLToPath(new URL("../../node_modules/.cache/uml-guest", import.meta.url));

/** What a test is given from outside is passed to its part in the guest as well. */
const PASSED_ON = ["FAIRLEAD_KUBE_PROXY", "FAIRLEAD_SHADOW_STATES", "FAIRLEAD_SHADOW_SKIPPED", "FAIRLEAD_SHADOW_SEED"];

/**
 * A program of this package as a guest's command. Node starts slowly there: what it compiled is kept from one boot to
 * the next.
 *
 * @param file path of a TypeScript file
 */
export async function guestProgram(
  file: string,
  args: readonly string[],
): Promise<Pick<GuestOptions, "command" | "cwd"> & { readonly env: Readonly<Record<string, string>> }> {
  await mkdir(COMPILED, { recursive: true });
  return {
    command: [process.execPath, "--conditions=@fairlead/source", "--no-warnings", file, ...args],
    cwd: ROOM,
    env: { ...passedOn(), NODE_COMPILE_CACHE: COMPILED, [AGENT_VARIABLE]: agentFile() },
  };
}

function passedOn(): Readonly<Record<string, string>> {
  return Object.fromEntries(
    PASSED_ON.flatMap((name) => (process.env[name] === undefined ? [] : [[name, process.env[name]]])),
  );
}
