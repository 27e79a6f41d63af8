import type { OpenNetlink } from "../netlink/socket.ts";
import type { Runner } from "../runner/runner.ts";
import { createNetlinkNfacct } from "./netlink.ts";
import type { Nfacct } from "./nfacct.ts";
import { createNfacctTool } from "./tool.ts";

export interface NfacctOptions {
  /**
   * How netlink is reached in the network namespace of this process, so that no process is started. Where it cannot be
   * had, and by default: the tool `nfacct`.
   */
  readonly open?: OpenNetlink;
}

/** NFACCT_NAME_MAX of linux/netfilter/nfnetlink_acct.h, without the closing zero. */
const MAX_NAME = 31;

/** The client of the counters. Looks at the first call whether it is netlink or the tool. */
export function createNfacct(runner: Runner, { open }: NfacctOptions = {}): Nfacct {
  let chosen: Promise<Nfacct> | undefined;
  const client = () => (chosen ??= choose(runner, open));
  return {
    async ensure(name) {
      // The tool would cut it in silence.
      if (name.length > MAX_NAME) return { ok: false, reason: `the name ${name} has more than ${MAX_NAME} characters` };
      return (await client()).ensure(name);
    },
    read: async (name) => (await client()).read(name),
  };
}

async function choose(runner: Runner, open: OpenNetlink | undefined): Promise<Nfacct> {
  const socket = await open?.().catch(() => undefined);
  if (open === undefined || socket === undefined) return createNfacctTool(runner);
  await socket.close();
  return createNetlinkNfacct(open);
}
