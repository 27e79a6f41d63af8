import { CommandError } from "../runner/command-error.ts";
import type { Runner } from "../runner/runner.ts";

/** What an accounting object has counted. */
export interface NfacctCount {
  readonly packets: number;
  readonly bytes: number;
}

export type NfacctResult = { readonly ok: true } | { readonly ok: false; readonly reason: string };

/** Netfilter's named counters (nfnetlink_acct). A rule with `-m nfacct` needs its counter before it. */
export interface Nfacct {
  /** Makes the counter unless it is there. Says why where this kernel or machine has none. */
  ensure(name: string): Promise<NfacctResult>;
  /** Undefined: there is no such counter, or none at all. */
  read(name: string): Promise<NfacctCount | undefined>;
}

/** NFACCT_NAME_MAX of linux/netfilter/nfnetlink_acct.h, without the closing zero. */
const MAX_NAME = 31;

/** The client of the nfacct tool. */
export function createNfacct(runner: Runner): Nfacct {
  return {
    ensure: (name) => ensure(runner, name),
    read: (name) => read(runner, name),
  };
}

async function ensure(runner: Runner, name: string): Promise<NfacctResult> {
  // The tool would cut it in silence.
  if (name.length > MAX_NAME) return { ok: false, reason: `the name ${name} has more than ${MAX_NAME} characters` };
  try {
    await runner.run(["nfacct", "add", name]);
    return { ok: true };
  } catch (error) {
    if (!(error instanceof CommandError)) throw error;
    if ((await read(runner, name)) !== undefined) return { ok: true };
    return { ok: false, reason: why(error) };
  }
}

async function read(runner: Runner, name: string): Promise<NfacctCount | undefined> {
  try {
    const { stdout } = await runner.run(["nfacct", "get", name]);
    const [, packets, bytes] = /pkts = (\d+), bytes = (\d+)/.exec(stdout) ?? [];
    return packets === undefined ? undefined : { packets: Number(packets), bytes: Number(bytes) };
  } catch (error) {
    if (error instanceof CommandError) return undefined;
    throw error;
  }
}

function why(error: CommandError): string {
  if (error.reason === "not-found") return "nfacct is not installed (apt-get install nfacct)";
  if (error.stderr.includes("not permitted")) return "nfacct may not be used: CAP_NET_ADMIN is missing";
  return `nfacct: ${error.stderr === "" ? error.message : error.stderr}; the kernel may lack nfnetlink_acct`;
}
