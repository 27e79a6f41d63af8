import { parseTarget, type Target } from "@fairlead/inspect";
import { UsageError } from "../frame/errors.ts";

/**
 * What a command is asked about, as `parseTarget` reads it.
 *
 * @param namespace of a service that is named without one
 * @param option the option that it stands in; absent: an argument
 * @throws UsageError naming what would be right
 */
export function targetOf(text: string, namespace: string, option?: string): Target {
  try {
    return parseTarget(text, namespace);
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    throw new UsageError(option === undefined ? error.message : `--${option}: ${error.message}`);
  }
}
