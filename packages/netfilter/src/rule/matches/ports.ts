import { checkInteger } from "../check.ts";
import { RuleTextError } from "../errors.ts";
import { parseUnsigned } from "../numbers.ts";
import { negation, not, typedOptions } from "../options.ts";
import { Problem } from "../problem.ts";
import type { RawOption } from "../raw.ts";
import type { MatchKind } from "./kind.ts";
import { parseTCPFlags, renderTCPFlags, type TCPFlagsMatch } from "./tcp-flags.ts";

/** Ports of a tcp, udp or sctp match; ranges are inclusive. */
export interface PortMatch {
  /** `!`: every port but these. */
  readonly negated?: boolean;
  /** The lowest port. */
  readonly from: number;
  /** The highest port; equal to `from` for a single one. */
  readonly to: number;
}

/** `-m tcp` and its kin; without ports it matches the protocol only. */
export interface PortsMatch<Protocol extends "tcp" | "udp" | "sctp"> {
  readonly kind: Protocol;
  readonly sport?: PortMatch;
  readonly dport?: PortMatch;
}

const PORTS = { "--sport": 1, "--source-port": 1, "--dport": 1, "--destination-port": 1 } as const;

/** The flags of TCP alongside its ports. */
export interface TCPMatch extends PortsMatch<"tcp"> {
  readonly flags?: TCPFlagsMatch;
}

const FLAGS = ["--tcp-flags", "--syn"] as const;
const tcpPorts = portsOf("tcp", { "--tcp-flags": 2, "--syn": 0, "--tcp-option": 1 });

export const tcp: MatchKind<TCPMatch> = {
  ...tcpPorts,
  parse(raw, family) {
    const asked = raw.options.filter(({ name }) => FLAGS.some((flag) => flag === name));
    const ports = tcpPorts.parse({ ...raw, options: raw.options.filter((option) => !asked.includes(option)) }, family);
    const [flags, ...more] = asked;
    if (flags === undefined || ports === undefined) return ports;
    return more.length > 0 ? undefined : { ...ports, flags: parseTCPFlags(flags) };
  },
  render: (match) => `${tcpPorts.render(match)}${renderTCPFlags(match.flags)}`,
};
export const udp = portsOf("udp", {});
export const sctp = portsOf("sctp", { "--chunk-types": 2 });

/** @param others options of the module that the type can't say */
function portsOf<Protocol extends "tcp" | "udp" | "sctp">(
  kind: Protocol,
  others: Readonly<Record<string, number>>,
): MatchKind<PortsMatch<Protocol>> {
  return {
    modules: [kind],
    options: { ...PORTS, ...others },
    parse(raw) {
      const options = typedOptions(raw, Object.keys(PORTS));
      if (options === undefined) return undefined;
      const sport = options.get("--sport") ?? options.get("--source-port");
      const dport = options.get("--dport") ?? options.get("--destination-port");
      if ([sport, dport].some((port) => /[a-z]/i.test(port?.values[0] ?? ""))) return undefined;
      return { kind, ...portField("sport", sport), ...portField("dport", dport) };
    },
    render: ({ sport, dport }) => ` -m ${kind}${renderPort("--sport", sport)}${renderPort("--dport", dport)}`,
  };
}

function portField(field: "sport" | "dport", option: RawOption | undefined): { [key in typeof field]?: PortMatch } {
  if (option === undefined) return {};
  const [from = "", to = from] = (option.values[0] ?? "").split(":", 2);
  const match = {
    ...negation(option),
    from: from === "" ? 0 : parseUnsigned(from, 0xffff, "port"),
    to: to === "" ? 0xffff : parseUnsigned(to, 0xffff, "port"),
  };
  if (match.to < match.from) throw new Problem(`port range "${option.values[0]}" ends before it begins`);
  const everyPort = match.from === 0 && match.to === 0xffff && !option.negated;
  return everyPort ? {} : { [field]: match };
}

function renderPort(option: string, port: PortMatch | undefined): string {
  if (port === undefined) return "";
  const from = checkInteger("port", port.from, 0xffff);
  const to = checkInteger("port", port.to, 0xffff);
  if (to < from) throw new RuleTextError("port", `${from}:${to}`, "must not end before it begins");
  return `${not(port)} ${option} ${from === to ? from : `${from}:${to}`}`;
}
