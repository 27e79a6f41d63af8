import { CommandError } from "../runner/command-error.ts";
import type { Runner } from "../runner/runner.ts";
import type { Nfacct, NfacctCount, NfacctResult } from "./nfacct.ts";

/** The counters by the tool `nfacct`, a process for each call. */
export function createNfacctTool(runner: Runner): Nfacct {
  return {
    ensure: (name) => ensure(runner, name),
    read: (name) => read(runner, name),
  };
}

async function ensure(runner: Runner, name: string): Promise<NfacctResult> {
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
  if (error.stderr.includes("not permitted")) return "no permission to use nfacct: CAP_NET_ADMIN is missing";
  return `nfacct: ${error.stderr === "" ? error.message : error.stderr}; the kernel may lack nfnetlink_acct`;
}
