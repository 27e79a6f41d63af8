import type { IPFamily } from "@fairlead/core";
import type { Certificate } from "../../control-plane/control-plane.ts";
import { PORT } from "../../control-plane/control-plane.ts";
import { runnerIn } from "../../lab/apply.ts";
import { cutArgv } from "../../lab/cut.ts";
import { type Script, startScript } from "../../support/script.ts";
import { fabricAddress } from "./addresses.ts";
import type { Ground } from "./ground.ts";

const API_PORT = String(PORT);
const GATE_PORT = "6444";
const tools: Readonly<Record<IPFamily, string>> = { IPv4: "iptables", IPv6: "ip6tables" };

/**
 * Leads what nodes send to the API server to a script that stands before it with its certificate, what they have open
 * included. `stop` takes it away, and ends what is open through it.
 *
 * @param file of the script; its arguments are CERTIFICATE KEY PORT HOST HOST-PORT, and `more`
 */
export async function openGate(
  { fabric, families, nodes }: Ground,
  { certFile, keyFile }: Certificate,
  file: string,
  more: readonly string[] = [],
): Promise<Script> {
  const [family = "IPv4"] = families;
  const runner = runnerIn(fabric);
  const host = fabricAddress[family];
  const gate = await startScript(fabric, file, [certFile, keyFile, GATE_PORT, host, API_PORT, ...more]);
  const rule = ["PREROUTING", "-i", "br0", "-p", "tcp", "--dport", API_PORT, "-j", "REDIRECT", "--to-ports", GATE_PORT];
  const nat = (verb: "-A" | "-D") => runner.run([tools[family], "-t", "nat", verb, ...rule]);
  try {
    await nat("-A");
    for (const { addresses } of nodes) await runner.run(cutArgv(API_PORT, addresses[family] ?? ""));
  } catch (error) {
    await gate.stop();
    throw error;
  }
  let stopped: Promise<void> | undefined;
  const stop = async () => {
    await gate.stop();
    await nat("-D");
  };
  return {
    ...gate,
    stop: () => {
      stopped ??= stop();
      return stopped;
    },
  };
}
