import { parseAddress, parseCIDR } from "@fairlead/base";
import { UsageError } from "../../frame/errors.ts";
import { list, type OptionSpec } from "../../frame/options.ts";
import { portOf } from "../../frame/port.ts";

/** Of TCP and SCTP, as conntrack calls them. Written out, so that help loads no kernel; a test compares them. */
export const CONNTRACK_STATES: ReadonlySet<string> = new Set([
  ...["none", "syn_sent", "syn_recv", "established", "fin_wait", "close_wait", "last_ack", "time_wait", "close"],
  ...["syn_sent2", "closed", "cookie_wait", "cookie_echoed", "shutdown_sent", "shutdown_recd", "shutdown_ack_sent"],
  ...["heartbeat_sent", "heartbeat_acked"],
]);

/** What else may be asked for in the place of a state. */
export const CONDITIONS = ["open", "offloaded", "unreplied", "gone"] as const;

/** Options that choose connections. Several values of one option are alternatives. */
export const filterOptions = {
  from: rangesOption("from", "Only connections of these clients."),
  to: rangesOption("to", "Only connections to this address, of a service or of an endpoint."),
  port: { ...list("PORT", "Only connections to this port, of a service or of an endpoint."), read: portsOf },
  state: {
    ...list(
      "STATE",
      "Only connections in this state of conntrack, such as established, or that are open (neither time_wait nor " +
        "close), offloaded (on the fast path), unreplied, or gone (their endpoint is).",
    ),
    read: statesOf,
  },
} as const;

function rangesOption(name: string, help: string): OptionSpec<readonly string[]> {
  const rangeOf = (text: string) => {
    const range = parseAddress(text) ?? parseCIDR(text);
    if (range !== undefined) return range.text;
    throw new UsageError(`--${name}=${text}: must be an address or a CIDR, such as 10.144.1.5 or 10.144.0.0/16`);
  };
  return { ...list("ADDRESS|CIDR", help), read: (texts) => eachOf(texts).map(rangeOf) };
}

function portsOf(texts: readonly string[]): readonly number[] {
  return eachOf(texts).map((text) => portOf("port", text));
}

function statesOf(texts: readonly string[]): readonly string[] {
  const known: ReadonlySet<string> = new Set([...CONDITIONS, ...CONNTRACK_STATES]);
  return eachOf(texts).map((text) => {
    const name = text.toLowerCase().replaceAll("-", "_");
    if (known.has(name)) return name;
    throw new UsageError(`--state=${text}: must be one of ${[...known].join(", ")}`);
  });
}

function eachOf(texts: readonly string[]): readonly string[] {
  return texts.flatMap((text) => text.split(",")).map((text) => text.trim());
}
