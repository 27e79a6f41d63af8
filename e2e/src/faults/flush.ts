import type { IPFamily } from "@fairlead/core";
import type { Argv } from "@fairlead/kernel";
import { plainTool } from "../support/plain-tool.ts";

/** Empties a table of iptables, or one chain of it. */
export function flushArgv(family: IPFamily, table: string, chain?: string): Argv {
  return [plainTool[family], "-t", table, "-F", ...(chain === undefined ? [] : [chain])];
}

/** Deletes the chains of a table that nothing refers to any more. */
export function deleteChainsArgv(family: IPFamily, table: string): Argv {
  return [plainTool[family], "-t", table, "-X"];
}
