import { errorText } from "@fairlead/base";
import type { Context } from "../../frame/context.ts";
import type { ClusterValues } from "../../inputs/planned.ts";
import { FORMAT, type Missing, PATHS, Sysdump } from "../../sysdump/dump.ts";
import { dumpedReports } from "../verify/look.ts";

/** What `fairlead verify` finds on a node, from nothing else than what the dump has of it. */
export async function verified(
  files: ReadonlyMap<string, string>,
  node: string,
  options: ClusterValues,
  context: Context,
): Promise<{ readonly text: string } | Missing> {
  const index = JSON.stringify({ format: FORMAT, nodes: [{ name: node, answered: true }] });
  const dump = new Sysdump("", new Map([...files, [PATHS.index, index]]));
  const named = { ...options, sysdump: undefined, live: false };
  try {
    const reports = await dumpedReports(dump, node, named, { ...context, warn: () => {} });
    return { text: `${JSON.stringify(reports, undefined, 2)}\n` };
  } catch (error) {
    return { what: "verify", why: errorText(error) };
  }
}
