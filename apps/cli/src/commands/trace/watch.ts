import { CommandError, detectVariant, lines, type Runner } from "@fairlead/kernel";
import type { Packet } from "@fairlead/trace";
import type { ExitCode } from "../../frame/command.ts";
import type { Context } from "../../frame/context.ts";
import { CommandFailure } from "../../frame/errors.ts";

/** Which packets are followed: their source only where somebody in particular was named. */
export interface WatchOptions {
  readonly from: string | undefined;
}

/**
 * Follows real packets until interrupted. With nft's iptables each rule on their way, by a TRACE rule that goes again at the
 * end; else the events of connection tracking, which tell where a connection was sent: the legacy variant's rules tell their
 * TRACE to the kernel's log alone.
 *
 * @throws CommandFailure where neither is to be had
 */
export async function watch(packet: Packet, options: WatchOptions, context: Context): Promise<ExitCode> {
  const { runner } = context;
  const tool = packet.family === "IPv4" ? "iptables-nft" : "ip6tables-nft";
  const rule = traceRule(packet, options);
  if (await canTrace(runner, tool)) await followRules(tool, rule, packet, context);
  else await followConnections(packet, options, context);
  return 0;
}

/** Needs rules that are nft's, xtables-monitor, and a rule in raw that marks the packets. */
async function canTrace(runner: Runner, tool: string): Promise<boolean> {
  if ((await detectVariant(runner)) !== "nft") return false;
  try {
    await runner.run(["xtables-monitor", "--version"]);
    await runner.run([tool, "-t", "raw", "-S", "OUTPUT"]);
    return true;
  } catch (error) {
    if (error instanceof CommandError) return false;
    throw error;
  }
}

function traceRule(packet: Packet, { from }: WatchOptions): readonly string[] {
  const { protocol, destination, dport, source } = packet;
  const port = dport === undefined ? [] : ["--dport", String(dport)];
  const particular = from !== undefined && !["pod", "node", "outside"].includes(from);
  return [...(particular ? ["-s", source] : []), "-d", destination, "-p", protocol, ...port, "-j", "TRACE"];
}

async function followRules(tool: string, rule: readonly string[], packet: Packet, context: Context): Promise<void> {
  const { runner, signal, out } = context;
  const chains = packet.inInterface === undefined ? ["OUTPUT"] : ["PREROUTING"];
  const change = (command: "-I" | "-D") =>
    Promise.all(chains.map((chain) => runner.run([tool, "-t", "raw", command, chain, ...rule])));
  await attempt(() => change("-I"));
  try {
    const family = packet.family === "IPv4" ? "-4" : "-6";
    await followLines(runner, ["xtables-monitor", "--trace", family], signal, out);
  } finally {
    await change("-D");
  }
}

async function followConnections(packet: Packet, { from }: WatchOptions, context: Context): Promise<void> {
  const { family, protocol, destination, dport, source } = packet;
  const port = dport === undefined ? [] : ["--orig-port-dst", String(dport)];
  const particular = from !== undefined && !["pod", "node", "outside"].includes(from);
  const sender = particular ? ["--orig-src", source] : [];
  context.warn(
    "this host's iptables cannot tell rule by rule (xtables-monitor, nft): connection tracking tells where connections go",
  );
  const argv = [
    "conntrack",
    "-E",
    "-f",
    family.toLowerCase(),
    "-p",
    protocol,
    "--orig-dst",
    destination,
    ...port,
    ...sender,
  ] as const;
  await followLines(context.runner, argv, context.signal, context.out);
}

async function followLines(
  runner: Runner,
  argv: readonly [string, ...string[]],
  signal: AbortSignal,
  out: (text: string) => void,
): Promise<void> {
  await attempt(async () => {
    try {
      for await (const line of lines(runner.stream(argv, { timeoutMs: 0, signal }))) out(`${line}\n`);
    } catch (error) {
      if (!signal.aborted) throw error;
    }
  });
}

async function attempt(work: () => Promise<unknown>): Promise<void> {
  try {
    await work();
  } catch (error) {
    throw new CommandFailure(`packets cannot be followed here: ${error instanceof Error ? error.message : error}`, {
      cause: error,
    });
  }
}
