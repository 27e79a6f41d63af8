/** The matches of iptables that have a type of their own: one row for each, with its options both ways. */

import { canonicalCIDR, parseMark, parseUnsigned, statisticProbability } from "./numbers.ts";
import {
  type IPFamily,
  type NameMatch,
  negation,
  not,
  Problem,
  type RawModule,
  type RawOption,
  singleOption,
  typedOptions,
} from "./options.ts";
import { checkInteger, checkName, checkValue, hex, quoteComment, RuleTextError } from "./values.ts";

/**
 * A kind of match, all of it: which modules of iptables it stands for, how their text is read, checked and written. Two
 * are compared by their text. What it asks of a packet is the tracer's.
 */
export interface MatchKind<M extends { readonly kind: string }> {
  /** What stands after `-m`. */
  readonly modules: readonly string[];
  /** Every option that the modules have, and how many values it takes; those that the type can't say among them. */
  readonly options: Readonly<Record<string, number>>;
  /**
   * @returns undefined when it has options that the type can't say: it is kept word for word then
   * @throws Problem for values that iptables refuses
   */
  parse(raw: RawModule, family: IPFamily): M | undefined;
  /**
   * ` -m module --option value`, with the leading space, as iptables-save prints it.
   *
   * @throws RuleTextError for values that could not be read back as the same
   */
  render(match: M): string;
}

/** What the routing tables say of an address: LOCAL, UNICAST, … */
export interface AddrtypeMatch {
  readonly kind: "addrtype";
  readonly srcType?: NameMatch;
  readonly dstType?: NameMatch;
}

export const addrtype: MatchKind<AddrtypeMatch> = {
  modules: ["addrtype"],
  options: { "--src-type": 1, "--dst-type": 1, "--limit-iface-in": 0, "--limit-iface-out": 0 },
  parse(raw) {
    const options = typedOptions(raw, ["--src-type", "--dst-type"]);
    if (options === undefined) return undefined;
    if (options.size === 0) throw new Problem("-m addrtype needs --src-type or --dst-type");
    const [source, destination] = [options.get("--src-type"), options.get("--dst-type")];
    return { kind: "addrtype", ...typeField("srcType", source), ...typeField("dstType", destination) };
  },
  render: ({ srcType, dstType }) =>
    ` -m addrtype${renderType("--src-type", srcType)}${renderType("--dst-type", dstType)}`,
};

function typeField(field: "srcType" | "dstType", option: RawOption | undefined): { [key in typeof field]?: NameMatch } {
  return option === undefined ? {} : { [field]: { ...negation(option), value: option.values[0] ?? "" } };
}

function renderType(option: string, type: NameMatch | undefined): string {
  return type === undefined ? "" : `${not(type)} ${option} ${checkValue("address type", type.value)}`;
}

export interface CommentMatch {
  readonly kind: "comment";
  readonly text: string;
}

export const comment: MatchKind<CommentMatch> = {
  modules: ["comment"],
  options: { "--comment": 1 },
  parse(raw) {
    const option = singleOption(raw, "--comment");
    return option === undefined || option.negated ? undefined : { kind: "comment", text: option.values[0] ?? "" };
  },
  render: ({ text }) => ` -m comment --comment ${quoteComment(text)}`,
};

/** The order in which iptables-save prints them. */
const STATES = ["INVALID", "NEW", "RELATED", "ESTABLISHED", "UNTRACKED", "SNAT", "DNAT"] as const;

/** States of `-m conntrack --ctstate`; SNAT and DNAT stand for the entry's status bits (xt_conntrack.h). */
export type ConntrackState = (typeof STATES)[number];

export interface ConntrackMatch {
  readonly kind: "conntrack";
  /** `-m state --state`, the old name of the same question; absent: `-m conntrack --ctstate`. */
  readonly module?: "state";
  readonly negated?: boolean;
  /** Each once, in the order in which `ConntrackState` lists them. */
  readonly states: readonly ConntrackState[];
}

export const conntrack: MatchKind<ConntrackMatch> = {
  modules: ["conntrack", "state"],
  options: { "--ctstate": 1, "--state": 1 },
  parse(raw) {
    const old = raw.name === "state";
    const option = singleOption(raw, old ? "--state" : "--ctstate");
    if (option === undefined) return undefined;
    const states = canonicalStates((option.values[0] ?? "").split(","));
    return { kind: "conntrack", ...(old ? { module: "state" } : {}), ...negation(option), states };
  },
  render(match) {
    const states = checkValue("state", match.states.join(","));
    return match.module === "state"
      ? ` -m state${not(match)} --state ${states}`
      : ` -m conntrack${not(match)} --ctstate ${states}`;
  },
};

function canonicalStates(states: readonly string[]): ConntrackState[] {
  const known = STATES.filter((state) => states.includes(state));
  if (known.length !== new Set(states).size) throw new Problem(`unknown connection state in "${states.join(",")}"`);
  return known;
}

/** The connection belongs to that virtual server of IPVS (`-m ipvs --vproto --vaddr --vport`). */
export interface IpvsMatch {
  readonly kind: "ipvs";
  readonly protocol: "tcp" | "udp" | "sctp";
  /** Canonical address. */
  readonly address: string;
  readonly port: number;
}

const IPVS_OPTIONS = { "--vproto": 1, "--vaddr": 1, "--vport": 1 } as const;
const NUMBERS = { tcp: 6, udp: 17, sctp: 132 } as const;

const PROTOCOLS: Readonly<Record<string, "tcp" | "udp" | "sctp">> = {
  "6": "tcp",
  "17": "udp",
  "132": "sctp",
  tcp: "tcp",
  udp: "udp",
  sctp: "sctp",
};

export const ipvs: MatchKind<IpvsMatch> = {
  modules: ["ipvs"],
  options: { ...IPVS_OPTIONS, "--ipvs": 0, "--vdir": 1, "--vmethod": 1, "--vportctl": 1 },
  parse(raw) {
    const options = typedOptions(raw, Object.keys(IPVS_OPTIONS));
    const protocol = PROTOCOLS[options?.get("--vproto")?.values[0] ?? ""];
    const [address, rest] = (options?.get("--vaddr")?.values[0] ?? "").split("/");
    const port = options?.get("--vport")?.values[0];
    if (protocol === undefined || address === undefined || address === "" || rest !== undefined || port === undefined) {
      return undefined;
    }
    if (raw.options.some((option) => option.negated)) return undefined;
    return { kind: "ipvs", protocol, address: hostAddress(address), port: parseUnsigned(port, 0xffff, "port") };
  },
  // In the order and with the numbers that iptables-save prints.
  render: ({ protocol, address, port }) =>
    ` -m ipvs --vproto ${NUMBERS[protocol]} --vaddr ${checkValue("address", address)} --vport ${checkInteger("port", port, 0xffff)}`,
};

function hostAddress(text: string): string {
  return canonicalCIDR(text).split("/")[0] ?? text;
}

export interface MarkMatch {
  readonly kind: "mark";
  readonly negated?: boolean;
  readonly value: number;
  readonly mask: number;
}

const FULL_MASK = 0xffffffff;

export const mark: MatchKind<MarkMatch> = {
  modules: ["mark"],
  options: { "--mark": 1 },
  parse(raw) {
    const option = singleOption(raw, "--mark");
    if (option === undefined) return undefined;
    const { value, mask = FULL_MASK } = parseMark(option.values[0] ?? "");
    return { kind: "mark", ...negation(option), value, mask };
  },
  // The full mask is left out, as -m mark does.
  render: (match) =>
    ` -m mark${not(match)} --mark ${hex("mark", match.value)}${match.mask === FULL_MASK ? "" : `/${hex("mask", match.mask)}`}`,
};

/** Counts in a named object. */
export interface NfacctMatch {
  readonly kind: "nfacct";
  readonly name: string;
}

export const nfacct: MatchKind<NfacctMatch> = {
  modules: ["nfacct"],
  options: { "--nfacct-name": 1 },
  parse(raw) {
    const option = singleOption(raw, "--nfacct-name");
    return option === undefined || option.negated ? undefined : { kind: "nfacct", name: option.values[0] ?? "" };
  },
  // Two spaces: iptables-save prints them.
  render: ({ name }) => ` -m nfacct --nfacct-name  ${checkName("nfacct", name)}`,
};

/** `--physdev-is-in` and its kin: whether the packet came in, goes out, or both by a bridge's port. */
export interface PhysdevMatch {
  readonly kind: "physdev";
  readonly negated?: boolean;
  readonly is: "in" | "out" | "bridged";
}

export const physdev: MatchKind<PhysdevMatch> = {
  modules: ["physdev"],
  options: {
    "--physdev-is-in": 0,
    "--physdev-is-out": 0,
    "--physdev-is-bridged": 0,
    "--physdev-in": 1,
    "--physdev-out": 1,
  },
  parse(raw) {
    const [option, ...more] = raw.options;
    const is = (["in", "out", "bridged"] as const).find((fact) => option?.name === `--physdev-is-${fact}`);
    if (option === undefined || is === undefined || more.length > 0) return undefined;
    return { kind: "physdev", ...negation(option), is };
  },
  render: (match) => ` -m physdev${not(match)} --physdev-is-${checkValue("physdev", match.is)}`,
};

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

export interface TCPMatch extends PortsMatch<"tcp"> {
  readonly flags?: TCPFlagsMatch;
}

const FLAGS = ["--tcp-flags", "--syn"] as const;
const tcpPorts = portsOf("tcp", { "--tcp-flags": 2, "--syn": 0, "--tcp-option": 1 });

/** In the order in which iptables-save prints them. */
const TCP_FLAGS = ["FIN", "SYN", "RST", "PSH", "ACK", "URG"] as const;

/** What `--syn` is short for: the first packet of a connection. */
export const FIRST_PACKET = { asked: ["FIN", "SYN", "RST", "ACK"], set: ["SYN"] } as const satisfies TCPFlagsMatch;

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

type TCPFlag = (typeof TCP_FLAGS)[number];

/** `--tcp-flags ASKED SET`: of the flags that are asked for, a packet has just these. */
export interface TCPFlagsMatch {
  /** `!`: a packet that has other flags. */
  readonly negated?: boolean;
  /** The flags that are looked at. */
  readonly asked: readonly TCPFlag[];
  /** Those of them that a packet must have. */
  readonly set: readonly TCPFlag[];
}

/** @throws Problem for flags that TCP has not */
function parseTCPFlags(option: RawOption): TCPFlagsMatch {
  if (option.name === "--syn") return { ...negation(option), ...FIRST_PACKET };
  const [asked = "", set = ""] = option.values;
  return { ...negation(option), asked: parseList(asked), set: parseList(set) };
}

function parseList(text: string): readonly TCPFlag[] {
  if (text === "ALL") return TCP_FLAGS;
  const names = text === "NONE" ? [] : text.split(",");
  const unknown = names.find((name) => !TCP_FLAGS.some((flag) => flag === name));
  if (unknown !== undefined) throw new Problem(`TCP flag "${unknown}" is none of ${TCP_FLAGS.join(", ")}, ALL, NONE`);
  return TCP_FLAGS.filter((flag) => names.includes(flag));
}

function renderTCPFlags(match: TCPFlagsMatch | undefined): string {
  return match === undefined ? "" : `${not(match)} --tcp-flags ${listText(match.asked)} ${listText(match.set)}`;
}

function listText(flags: readonly TCPFlag[]): string {
  const wrong = flags.find((flag) => !TCP_FLAGS.includes(flag));
  if (wrong !== undefined) throw new RuleTextError("TCP flag", wrong, `must be one of ${TCP_FLAGS.join(", ")}`);
  return flags.length === 0 ? "NONE" : TCP_FLAGS.filter((flag) => flags.includes(flag)).join(",");
}

/** Addresses that were seen, by the name of their list. */
export interface RecentMatch {
  readonly kind: "recent";
  readonly op: "set" | "rcheck";
  readonly name: string;
  /** Only rcheck: seconds, and whether older entries are reaped. */
  readonly seconds?: number;
  readonly reap?: boolean;
  /** `255.255.255.255` or the IPv6 mask of the same length; as iptables-save prints it. */
  readonly mask?: string;
  readonly side: "rsource" | "rdest";
}

const RECENT_OPTIONS = {
  "--set": 0,
  "--rcheck": 0,
  "--seconds": 1,
  "--reap": 0,
  "--name": 1,
  "--mask": 1,
  "--rsource": 0,
  "--rdest": 0,
} as const;

const FULL_NETMASK: Readonly<Record<IPFamily, string>> = {
  IPv4: "255.255.255.255",
  IPv6: "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
};

export const recent: MatchKind<RecentMatch> = {
  modules: ["recent"],
  options: { ...RECENT_OPTIONS, "--update": 0, "--remove": 0, "--hitcount": 1, "--rttl": 0 },
  parse(raw, family) {
    const options = typedOptions(raw, Object.keys(RECENT_OPTIONS));
    if (options === undefined || raw.options.some((option) => option.negated)) return undefined;
    if (options.has("--set") === options.has("--rcheck"))
      throw new Problem("-m recent needs one of --set and --rcheck");
    const seconds = options.get("--seconds")?.values[0];
    return {
      kind: "recent",
      op: options.has("--set") ? "set" : "rcheck",
      name: options.get("--name")?.values[0] ?? "DEFAULT",
      ...(seconds === undefined ? {} : { seconds: parseUnsigned(seconds, 0xffffffff, "seconds") }),
      ...(options.has("--reap") ? { reap: true } : {}),
      mask: options.get("--mask")?.values[0] ?? FULL_NETMASK[family],
      side: options.has("--rdest") ? "rdest" : "rsource",
    };
  },
  render(match) {
    const seconds =
      match.seconds === undefined ? "" : ` --seconds ${checkInteger("seconds", match.seconds, 0xffffffff)}`;
    const reap = match.reap === true ? " --reap" : "";
    const mask = match.mask === undefined ? "" : ` --mask ${checkValue("mask", match.mask)}`;
    return ` -m recent --${match.op}${seconds}${reap} --name ${checkName("recent", match.name)}${mask} --${match.side}`;
  },
};

/** Whether an ipset has what the packet has. */
export interface SetMatch {
  readonly kind: "set";
  readonly negated?: boolean;
  readonly name: string;
  readonly flags: readonly ("src" | "dst")[];
}

export const set: MatchKind<SetMatch> = {
  modules: ["set"],
  options: { "--match-set": 2 },
  parse(raw) {
    const option = singleOption(raw, "--match-set");
    if (option === undefined) return undefined;
    const [name = "", flags = ""] = option.values;
    return { kind: "set", ...negation(option), name, flags: flags.split(",").map(flagOf) };
  },
  render: (match) =>
    ` -m set${not(match)} --match-set ${checkName("set", match.name)} ${checkValue("set flags", match.flags.join(","))}`,
};

function flagOf(flag: string): "src" | "dst" {
  if (flag !== "src" && flag !== "dst") throw new Problem(`set flag "${flag}" is neither src nor dst`);
  return flag;
}

export interface StatisticMatch {
  readonly kind: "statistic";
  readonly mode: "random";
  /** As the kernel gives it back, see `statisticProbability`. */
  readonly probability: string;
}

export const statistic: MatchKind<StatisticMatch> = {
  modules: ["statistic"],
  options: { "--mode": 1, "--probability": 1, "--every": 1, "--packet": 1 },
  parse(raw) {
    const options = typedOptions(raw, ["--mode", "--probability"]);
    const probability = options?.get("--probability");
    if (probability === undefined || probability.negated || options?.get("--mode")?.values[0] !== "random") {
      return undefined;
    }
    const value = Number(probability.values[0]);
    if (!(value >= 0 && value <= 1)) {
      throw new Problem(`probability "${probability.values[0]}" is not a number from 0 to 1`);
    }
    return { kind: "statistic", mode: "random", probability: statisticProbability(value) };
  },
  render({ probability }) {
    if (!/^(?:0|1)(?:\.\d+)?$/.test(probability)) {
      throw new RuleTextError("probability", probability, "must be a decimal from 0 to 1");
    }
    return ` -m statistic --mode random --probability ${probability}`;
  },
};
