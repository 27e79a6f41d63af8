import { fileURLToPath } from "node:url";
import type { Argv } from "@fairlead/kernel";

const MAIN = fileURLToPath(new URL("relay-main.ts", import.meta.url));

/**
 * What is run in a namespace to lead connections from one end to the other. A unix socket is reached from every network
 * namespace, so the test ground and the control plane meet without an interface of the machine's own.
 *
 * @param from path of a unix socket, or HOST:PORT; listens there
 * @param to the same; connects to it
 */
export function relayArgv(from: string, to: string): Argv {
  return [process.execPath, "--no-warnings", MAIN, from, to];
}
