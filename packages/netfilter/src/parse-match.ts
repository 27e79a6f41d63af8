import { canonicalCIDR } from "./address.ts";
import type { RawModule, RawOption } from "./collect.ts";
import { parseMark, parseUnsigned, statisticProbability } from "./numbers.ts";
import { negation, rawArgs, typedOptions } from "./options.ts";
import { Problem } from "./problem.ts";
import type { ConntrackState, IPFamily, Match, NameMatch, PortMatch } from "./rule.ts";
import { CONNTRACK_STATES } from "./vocabulary.ts";

const FULL_MASK: Readonly<Record<IPFamily, string>> = {
  IPv4: "255.255.255.255",
  IPv6: "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
};

/**
 * The match in its type, or word for word where it has options that the type can't say.
 *
 * @throws Problem for values that iptables refuses
 */
export function parseMatch(raw: RawModule, family: IPFamily): Match {
  return typedMatch(raw, family) ?? { kind: "unknown", module: raw.name, args: rawArgs(raw) };
}

function typedMatch(raw: RawModule, family: IPFamily): Match | undefined {
  switch (raw.name) {
    case "comment":
      return comment(raw);
    case "tcp":
    case "udp":
    case "sctp":
      return ports(raw, raw.name);
    case "conntrack":
    case "state":
      return conntrack(raw);
    case "mark":
      return mark(raw);
    case "addrtype":
      return addrtype(raw);
    case "statistic":
      return statistic(raw);
    case "recent":
      return recent(raw, family);
    case "nfacct":
      return nfacct(raw);
    case "set":
      return set(raw);
    case "physdev":
      return physdev(raw);
    case "ipvs":
      return ipvs(raw);
    default:
      return undefined;
  }
}

/** The one option of the match, which it can't do without; undefined when there are others beside it. */
function single(raw: RawModule, name: string): RawOption | undefined {
  const options = typedOptions(raw, [name]);
  if (options === undefined) return undefined;
  const option = options.get(name);
  if (option === undefined) throw new Problem(`-m ${raw.name} needs ${name}`);
  return option;
}

function comment(raw: RawModule): Match | undefined {
  const option = single(raw, "--comment");
  return option === undefined || option.negated ? undefined : { kind: "comment", text: option.values[0] ?? "" };
}

function nfacct(raw: RawModule): Match | undefined {
  const option = single(raw, "--nfacct-name");
  return option === undefined || option.negated ? undefined : { kind: "nfacct", name: option.values[0] ?? "" };
}

function ports(raw: RawModule, kind: "tcp" | "udp" | "sctp"): Match | undefined {
  const options = typedOptions(raw, ["--sport", "--source-port", "--dport", "--destination-port"]);
  if (options === undefined) return undefined;
  const sport = options.get("--sport") ?? options.get("--source-port");
  const dport = options.get("--dport") ?? options.get("--destination-port");
  if ([sport, dport].some((port) => /[a-z]/i.test(port?.values[0] ?? ""))) return undefined;
  return { kind, ...portField("sport", sport), ...portField("dport", dport) };
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

function conntrack(raw: RawModule): Match | undefined {
  const old = raw.name === "state";
  const option = single(raw, old ? "--state" : "--ctstate");
  if (option === undefined) return undefined;
  const states = (option.values[0] ?? "").split(",");
  return {
    kind: "conntrack",
    ...(old ? { module: "state" } : {}),
    ...negation(option),
    states: canonicalStates(states),
  };
}

/** Each state once, in the order in which iptables-save prints them. */
function canonicalStates(states: readonly string[]): ConntrackState[] {
  const known = CONNTRACK_STATES.filter((state) => states.includes(state));
  if (known.length !== new Set(states).size) throw new Problem(`unknown connection state in "${states.join(",")}"`);
  return known;
}

function mark(raw: RawModule): Match | undefined {
  const option = single(raw, "--mark");
  if (option === undefined) return undefined;
  const { value, mask = 0xffffffff } = parseMark(option.values[0] ?? "");
  return { kind: "mark", ...negation(option), value, mask };
}

function addrtype(raw: RawModule): Match | undefined {
  const options = typedOptions(raw, ["--src-type", "--dst-type"]);
  if (options === undefined) return undefined;
  if (options.size === 0) throw new Problem("-m addrtype needs --src-type or --dst-type");
  return {
    kind: "addrtype",
    ...typeField("srcType", options.get("--src-type")),
    ...typeField("dstType", options.get("--dst-type")),
  };
}

function typeField(field: "srcType" | "dstType", option: RawOption | undefined): { [key in typeof field]?: NameMatch } {
  return option === undefined ? {} : { [field]: { ...negation(option), value: option.values[0] ?? "" } };
}

function statistic(raw: RawModule): Match | undefined {
  const options = typedOptions(raw, ["--mode", "--probability"]);
  const probability = options?.get("--probability");
  if (probability === undefined || probability.negated || options?.get("--mode")?.values[0] !== "random") {
    return undefined;
  }
  const value = Number(probability.values[0]);
  if (!(value >= 0 && value <= 1)) throw new Problem(`probability "${probability.values[0]}" is no number from 0 to 1`);
  return { kind: "statistic", mode: "random", probability: statisticProbability(value) };
}

const RECENT_OPTIONS = [
  "--set",
  "--rcheck",
  "--seconds",
  "--reap",
  "--name",
  "--mask",
  "--rsource",
  "--rdest",
] as const;

function recent(raw: RawModule, family: IPFamily): Match | undefined {
  const options = typedOptions(raw, RECENT_OPTIONS);
  if (options === undefined || raw.options.some((option) => option.negated)) return undefined;
  if (options.has("--set") === options.has("--rcheck")) throw new Problem("-m recent needs one of --set and --rcheck");
  const seconds = options.get("--seconds")?.values[0];
  return {
    kind: "recent",
    op: options.has("--set") ? "set" : "rcheck",
    name: options.get("--name")?.values[0] ?? "DEFAULT",
    ...(seconds === undefined ? {} : { seconds: parseUnsigned(seconds, 0xffffffff, "seconds") }),
    ...(options.has("--reap") ? { reap: true } : {}),
    mask: options.get("--mask")?.values[0] ?? FULL_MASK[family],
    side: options.has("--rdest") ? "rdest" : "rsource",
  };
}

function set(raw: RawModule): Match | undefined {
  const option = single(raw, "--match-set");
  if (option === undefined) return undefined;
  const [name = "", flags = ""] = option.values;
  return { kind: "set", ...negation(option), name, flags: flags.split(",").map(setFlag) };
}

function setFlag(flag: string): "src" | "dst" {
  if (flag !== "src" && flag !== "dst") throw new Problem(`set flag "${flag}" is neither src nor dst`);
  return flag;
}

function physdev(raw: RawModule): Match | undefined {
  const [option, ...more] = raw.options;
  const is = (["in", "out", "bridged"] as const).find((fact) => option?.name === `--physdev-is-${fact}`);
  if (option === undefined || is === undefined || more.length > 0) return undefined;
  return { kind: "physdev", ...negation(option), is };
}

const IPVS_PROTOCOLS: Readonly<Record<string, "tcp" | "udp" | "sctp">> = {
  "6": "tcp",
  "17": "udp",
  "132": "sctp",
  tcp: "tcp",
  udp: "udp",
  sctp: "sctp",
};

function ipvs(raw: RawModule): Match | undefined {
  const options = typedOptions(raw, ["--vproto", "--vaddr", "--vport"]);
  const protocol = IPVS_PROTOCOLS[options?.get("--vproto")?.values[0] ?? ""];
  const [address, rest] = (options?.get("--vaddr")?.values[0] ?? "").split("/");
  const port = options?.get("--vport")?.values[0];
  if (protocol === undefined || address === undefined || address === "" || rest !== undefined || port === undefined) {
    return undefined;
  }
  if (raw.options.some((option) => option.negated)) return undefined;
  return { kind: "ipvs", protocol, address: hostAddress(address), port: parseUnsigned(port, 0xffff, "port") };
}

function hostAddress(text: string): string {
  return canonicalCIDR(text).split("/")[0] ?? text;
}
