import { errorText } from "@fairlead/base";
import { CommandError, detectVariant, type IPFamily, lines, type Runner } from "@fairlead/kernel";
import type { Packet } from "@fairlead/trace";
import type { ExitCode } from "../../frame/command.ts";
import type { Context } from "../../frame/context.ts";
import { CommandFailure } from "../../frame/errors.ts";
import { tableNames } from "../../node/nft-tables.ts";
import {
  removeLeftTraceRules,
  removeOwnTraceRules,
  type TraceRule,
  traceRule,
  traceRuleCommand,
} from "../../node/trace-rules.ts";
import { followTables, hasProxyTable } from "./watch-tables.ts";

/** Which packets are followed: their source only where one sender was named. */
export interface WatchOptions {
  readonly from: string | undefined;
}

/**
 * Follows real packets until interrupted. Where a proxy has a table of nftables, through the rules of all tables. With
 * nft's iptables each rule on their way, by a TRACE rule that goes again however the process ends (a killed one's with
 * the next run, or with the doctor's); else the events of connection tracking, which tell where a connection was sent:
 * the legacy variant's rules report their TRACE to the kernel's log only.
 *
 * @throws CommandFailure where neither is to be had
 */
export async function watch(packet: Packet, options: WatchOptions, context: Context): Promise<ExitCode> {
  const { runner } = context;
  const { removed = [] } = (await attempt(() => removeLeftTraceRules(runner))) ?? {};
  for (const rule of removed) {
    context.warn(`removed what a killed fairlead left in raw: ${traceRuleCommand("-I", rule).join(" ")}`);
  }
  const tables = (await tableNames(runner)) ?? [];
  if (hasProxyTable(tables, packet.family)) {
    await context.untilStopped(() =>
      attempt(() => followTables({ packet, fromAnybody: !isParticular(options.from), tables }, context)),
    );
  } else if (await canTrace(runner, packet.family))
    await context.untilStopped(() => followRules(packet, options, context));
  else await context.untilStopped(() => followConnections(packet, options, context));
  return 0;
}

/** Needs rules that are nft's, xtables-monitor, and a rule in raw that marks the packets. */
async function canTrace(runner: Runner, family: IPFamily): Promise<boolean> {
  if ((await detectVariant(runner)) !== "nft") return false;
  try {
    await runner.run(["xtables-monitor", "--version"]);
    await runner.run([family === "IPv4" ? "iptables-nft" : "ip6tables-nft", "-t", "raw", "-S", "OUTPUT"]);
    return true;
  } catch (error) {
    if (error instanceof CommandError) return false;
    throw error;
  }
}

function matchesOf(packet: Packet, { from }: WatchOptions): readonly string[] {
  const { protocol, destination, dport, source } = packet;
  const port = dport === undefined ? [] : ["--dport", String(dport)];
  return [...(isParticular(from) ? ["-s", source] : []), "-d", destination, "-p", protocol, ...port];
}

/** Whether one sender was named, no kind of senders. */
function isParticular(from: string | undefined): boolean {
  return from !== undefined && !["pod", "node", "outside"].includes(from);
}

async function followRules(packet: Packet, options: WatchOptions, context: Context): Promise<void> {
  const { runner, signal, out } = context;
  const chain = packet.inInterface === undefined ? "OUTPUT" : "PREROUTING";
  const rule = traceRule(packet.family, chain, matchesOf(packet, options));
  try {
    await attempt(() => runner.run(traceRuleCommand("-I", rule)));
    const family = packet.family === "IPv4" ? "-4" : "-6";
    await followLines(runner, ["xtables-monitor", "--trace", family], signal, out);
  } finally {
    await takeAway(rule, context);
  }
}

/** A terminal's next Ctrl-C ends iptables as well: so often it is begun again. */
const INTERRUPTIONS = 5;

/** @throws CommandFailure with the command that is left to do */
async function takeAway(
  rule: TraceRule,
  { runner }: Pick<Context, "runner">,
  interruptions = INTERRUPTIONS,
): Promise<void> {
  try {
    await removeOwnTraceRules(runner, rule.family);
  } catch (error) {
    if (isInterrupted(error) && interruptions > 0) return takeAway(rule, { runner }, interruptions - 1);
    const command = traceRuleCommand("-D", rule).join(" ");
    const reason = errorText(error);
    throw new CommandFailure(`the TRACE rule is still there: ${reason}\nremove it: ${command}`, { cause: error });
  }
}

async function followConnections(packet: Packet, { from }: WatchOptions, context: Context): Promise<void> {
  const { family, protocol, destination, dport, source } = packet;
  const port = dport === undefined ? [] : ["--orig-port-dst", String(dport)];
  const sender = isParticular(from) ? ["--orig-src", source] : [];
  context.warn(
    "this host's iptables cannot trace rule by rule (xtables-monitor, nft): connection tracking shows where connections go",
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
      if (!signal.aborted && !isInterrupted(error)) throw error;
    }
  });
}

/** A terminal's Ctrl-C ends the program as well, and that may be seen before one's own signal. */
function isInterrupted(error: unknown): boolean {
  return error instanceof CommandError && ["SIGINT", "SIGHUP", "SIGTERM"].includes(error.signal ?? "");
}

async function attempt<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw new CommandFailure(`packets cannot be followed here: ${errorText(error)}`, {
      cause: error,
    });
  }
}
