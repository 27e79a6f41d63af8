import type { IPFamily } from "@fairlead/core";
import type { NetworkNamespace } from "@fairlead/kernel/netns";
import type { Certificate } from "../../control-plane/control-plane.ts";
import { PORT } from "../../control-plane/control-plane.ts";
import { cutArgv } from "../../faults/cut-connections.ts";
import { type Script, startScript } from "../../support/script.ts";
import { runnerIn } from "../../wire/apply.ts";
import type { Client } from "../node.ts";

const API_PORT = String(PORT);
const GATE_PORT = "6444";
const TOOLS: Readonly<Record<IPFamily, string>> = { IPv4: "iptables", IPv6: "ip6tables" };

/** An API server that gates can stand before. */
export interface GatePlace {
  /** Where it is. */
  readonly namespace: NetworkNamespace;
  readonly family: IPFamily;
  /** Its address of that family, at which the nodes reach it. */
  readonly host: string;
  readonly certificate: Certificate;
  /** Whose requests come to a gate that does not say whose. */
  readonly nodes: readonly Pick<Client, "addresses">[];
}

/** A script that stands before the API server; its arguments are CERTIFICATE KEY PORT HOST HOST-PORT, and `more`. */
interface Gate {
  readonly file: string;
  readonly more?: readonly string[];
  /** Whose requests come to it; default: those of all nodes. */
  readonly nodes?: GatePlace["nodes"];
}

/**
 * Leads what nodes send to the API server to a script that stands before it with its certificate, what they have open
 * included. `stop` takes it away, and ends what is open through it.
 */
export async function openGate(
  { namespace, family, host, certificate: { certFile, keyFile }, nodes: all }: GatePlace,
  { file, more = [], nodes = all }: Gate,
): Promise<Script> {
  const runner = runnerIn(namespace);
  const gate = await startScript(namespace, file, [certFile, keyFile, GATE_PORT, host, API_PORT, ...more]);
  const sources = nodes.map(({ addresses }) => addresses[family] ?? "");
  const rule = ["-p", "tcp", "--dport", API_PORT, "-j", "REDIRECT", "--to-ports", GATE_PORT];
  const nat = (verb: "-A" | "-D") =>
    runner.run([TOOLS[family], "-t", "nat", verb, "PREROUTING", "-s", sources.join(","), ...rule]);
  try {
    await nat("-A");
    for (const source of sources) await runner.run(cutArgv(API_PORT, source));
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
