import { readFile } from "node:fs/promises";
import { errorText } from "@fairlead/base";
import { CommandFailure } from "../../frame/errors.ts";

/** Alongside the bundle; from the sources: where the bundle is built. */
const SCRIPT = new URL(
  import.meta.url.endsWith(".ts") ? "../../../dist/connectivity-pod.js" : "./connectivity-pod.js",
  import.meta.url,
);

/**
 * What servers and clients run.
 *
 * @throws CommandFailure when it is not there
 */
export async function podScript(): Promise<string> {
  try {
    return await readFile(SCRIPT, "utf8");
  } catch (error) {
    throw new CommandFailure(`the pods' program is missing from this installation: ${errorText(error)}`, {
      cause: error,
    });
  }
}
