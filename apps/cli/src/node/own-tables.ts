import { errorText } from "@fairlead/base";
import { type Argv, CommandError, type IPFamily, nftTableNames, type Runner, readNftTables } from "@fairlead/kernel";
import { IP_FAMILY, NFT_FAMILY } from "@fairlead/netfilter/nft";
import { isOfIptables } from "./nft-tables.ts";
import { tablesToJson } from "./table-json.ts";
import { TABLES } from "./tables-call.ts";

/**
 * What a `fairlead` that is asked for tables of nftables prints, read by netlink in this process's network namespace.
 *
 * @param argv `__tables`, and the family
 * @throws Error when there is no netlink here, or this process may not read them
 */
export async function tablesText([, asked]: readonly string[]): Promise<string> {
  if (asked === undefined) return JSON.stringify(await nftTableNames());
  return tablesToJson(await readNftTables(familyOf(asked), (name) => !isOfIptables(name)));
}

function familyOf(asked: string): IPFamily {
  if (asked === NFT_FAMILY.IPv4 || asked === NFT_FAMILY.IPv6) return IP_FAMILY[asked];
  throw new Error(`${asked} is not ip or ip6`);
}

/** Runs programs on this host; what a `fairlead` in a pod would be asked for tables, this process answers itself. */
export function answeringRunner(runner: Runner): Runner {
  return {
    run: async (argv, options) =>
      argv[0] === "fairlead" && argv[1] === TABLES ? answer(argv) : runner.run(argv, options),
    stream: (argv, options) => runner.stream(argv, options),
  };
}

async function answer(argv: Argv) {
  try {
    return { stdout: await tablesText(argv.slice(1)), stderr: "" };
  } catch (error) {
    throw new CommandError({ argv, reason: "exit", exitCode: 3, stderr: errorText(error), cause: error });
  }
}
