/** The targets of iptables: one row for each, with its options both ways, and the table of their kinds. */

import { parseMark } from "./numbers.ts";
import { type IPFamily, Problem, type RawModule, type RawOption, rawArgs, typedOptions } from "./options.ts";
import { checkChainName, checkValue, hex, isTargetName, renderWords } from "./values.ts";

interface DnatTarget {
  readonly kind: "dnat";
  readonly to: string;
  readonly random?: boolean;
  readonly persistent?: boolean;
}

/** `MARK --set-xmark value/mask`: mark = (mark & ~mask) ^ value. */
interface MarkTarget {
  readonly kind: "mark";
  readonly value: number;
  readonly mask: number;
}

/** What MASQUERADE and REDIRECT have in common. */
interface PortsAndRandom {
  readonly toPorts?: string;
  readonly random?: boolean;
}

interface MasqueradeTarget extends PortsAndRandom {
  readonly kind: "masquerade";
  readonly randomFully?: boolean;
}

interface RedirectTarget extends PortsAndRandom {
  readonly kind: "redirect";
}

interface RejectTarget {
  readonly kind: "reject";
  readonly with: string;
}

interface VerdictTarget<Kind extends "accept" | "drop" | "return"> {
  readonly kind: Kind;
}

type TypedTarget =
  | DnatTarget
  | MarkTarget
  | MasqueradeTarget
  | RedirectTarget
  | RejectTarget
  | VerdictTarget<"accept">
  | VerdictTarget<"drop">
  | VerdictTarget<"return">;

/** A target of a rule: one of those that have a type of their own, or another one with its words. */
export type Target =
  | TypedTarget
  | { readonly kind: "jump" | "goto"; readonly chain: string }
  /** A target this package has no type for, kept word for word. */
  | { readonly kind: "unknown"; readonly name: string; readonly args: readonly string[] };

/** A kind of target, all of it: how its text is read, checked and written. What it does to a packet is the tracer's. */
interface TargetKind<T extends { readonly kind: string }> {
  /** What stands after `-j`. */
  readonly name: string;
  /** Every option that it has, and how many values each takes. */
  readonly options: Readonly<Record<string, number>>;
  /**
   * @param raw has no negated option
   * @returns undefined when it has options that the type can't say: it is kept word for word then
   * @throws Problem for values that iptables refuses
   */
  parse(raw: RawModule, family: IPFamily): T | undefined;
  /**
   * The options as iptables-save prints them, each with a leading space.
   *
   * @throws RuleTextError for values that could not be read back as the same
   */
  render(target: T): string;
}

const dnat: TargetKind<DnatTarget> = {
  name: "DNAT",
  options: { "--to-destination": 1, "--random": 0, "--persistent": 0 },
  parse(raw) {
    const options = typedOptions(raw, ["--to-destination", "--random", "--persistent"]);
    if (options === undefined) return undefined;
    const to = options.get("--to-destination")?.values[0];
    if (to === undefined) throw new Problem("-j DNAT needs --to-destination");
    return {
      kind: "dnat",
      to,
      ...(options.has("--random") ? { random: true } : {}),
      ...(options.has("--persistent") ? { persistent: true } : {}),
    };
  },
  render: ({ to, random, persistent }) =>
    ` --to-destination ${checkValue("destination", to)}${random === true ? " --random" : ""}${persistent === true ? " --persistent" : ""}`,
};

const FULL_MASK = 0xffffffff;

/** Every way to set a mark is one of `mark = (mark & ~mask) ^ value` (xt_MARK). */
const setMark: TargetKind<MarkTarget> = {
  name: "MARK",
  options: { "--set-xmark": 1, "--set-mark": 1, "--or-mark": 1, "--and-mark": 1, "--xor-mark": 1 },
  parse(raw) {
    const [option, ...more] = raw.options;
    if (option === undefined) throw new Problem("-j MARK needs an option");
    if (more.length > 0) throw new Problem("-j MARK takes one option");
    const { value, mask } = parseMark(option.values[0] ?? "");
    switch (option.name) {
      case "--set-xmark":
        return { kind: "mark", value, mask: mask ?? FULL_MASK };
      case "--set-mark":
        return { kind: "mark", value, mask: mask === undefined ? FULL_MASK : (mask | value) >>> 0 };
      case "--or-mark":
        return { kind: "mark", value, mask: value };
      case "--and-mark":
        return { kind: "mark", value: 0, mask: ~value >>> 0 };
      case "--xor-mark":
        return { kind: "mark", value, mask: 0 };
      default:
        return undefined;
    }
  },
  render: ({ value, mask }) => ` --set-xmark ${hex("mark", value)}/${hex("mask", mask)}`,
};

const masquerade: TargetKind<MasqueradeTarget> = {
  name: "MASQUERADE",
  options: { "--to-ports": 1, "--random": 0, "--random-fully": 0 },
  parse(raw) {
    const options = typedOptions(raw, ["--to-ports", "--random", "--random-fully"]);
    if (options === undefined) return undefined;
    const fully = options.has("--random-fully") ? { randomFully: true } : {};
    return { kind: "masquerade", ...portsAndRandom(options), ...fully };
  },
  render: (target) => `${renderPortsAndRandom(target)}${target.randomFully === true ? " --random-fully" : ""}`,
};

const redirect: TargetKind<RedirectTarget> = {
  name: "REDIRECT",
  options: { "--to-ports": 1, "--random": 0 },
  parse(raw) {
    const options = typedOptions(raw, ["--to-ports", "--random"]);
    return options === undefined ? undefined : { kind: "redirect", ...portsAndRandom(options) };
  },
  render: renderPortsAndRandom,
};

const DEFAULTS: Readonly<Record<IPFamily, string>> = {
  IPv4: "icmp-port-unreachable",
  IPv6: "icmp6-port-unreachable",
};

const reject: TargetKind<RejectTarget> = {
  name: "REJECT",
  options: { "--reject-with": 1 },
  parse(raw, family) {
    const options = typedOptions(raw, ["--reject-with"]);
    if (options === undefined) return undefined;
    return { kind: "reject", with: options.get("--reject-with")?.values[0] ?? DEFAULTS[family] };
  },
  render: (target) => ` --reject-with ${checkValue("reject type", target.with)}`,
};

const accept = verdictOf("accept", "ACCEPT");
const drop = verdictOf("drop", "DROP");
const returned = verdictOf("return", "RETURN");

type Kinds = { readonly [Kind in TypedTarget["kind"]]: TargetKind<Extract<TypedTarget, { readonly kind: Kind }>> };

const kinds: Kinds = { accept, dnat, drop, mark: setMark, masquerade, redirect, reject, return: returned };

interface Named {
  readonly kind: TargetKind<TypedTarget>;
  readonly options: ReadonlyMap<string, number>;
}

const named: ReadonlyMap<string, Named> = new Map(
  // Each reads what is of its own kind; which that is, its name says.
  Object.values(kinds).map((kind) => [
    kind.name,
    { kind: kind as unknown as TargetKind<TypedTarget>, options: new Map(Object.entries(kind.options)) },
  ]),
);

/** How many values each option of a target takes; undefined for a target without a type. */
export function targetOptions(name: string): ReadonlyMap<string, number> | undefined {
  return named.get(name)?.options;
}

/**
 * The target in its type, or word for word where the type can't say it. A name that is not one of the kernel's targets
 * is a chain's.
 *
 * @throws Problem for values that iptables refuses
 */
export function parseTarget(raw: RawModule, family: IPFamily): Target {
  return typedTarget(raw, family) ?? { kind: "unknown", name: raw.name, args: rawArgs(raw) };
}

/**
 * ` -j TARGET --option value`, with the leading space.
 *
 * @throws RuleTextError for values that could not be read back as the same
 */
export function renderTarget(target: Target): string {
  switch (target.kind) {
    case "jump":
      return ` -j ${checkChainName(target.chain)}`;
    case "goto":
      return ` -g ${checkChainName(target.chain)}`;
    case "unknown":
      return ` -j ${checkValue("target", target.name)}${renderWords(target.args)}`;
    default: {
      // The row of a kind writes targets of that kind, which the type system can't follow.
      const kind = kinds[target.kind] as unknown as TargetKind<TypedTarget>;
      return ` -j ${kind.name}${kind.render(target)}`;
    }
  }
}

function typedTarget(raw: RawModule, family: IPFamily): Target | undefined {
  if (raw.options.some((option) => option.negated)) return undefined;
  const found = named.get(raw.name);
  if (found !== undefined) return found.kind.parse(raw, family);
  return isTargetName(raw.name) || raw.options.length > 0 ? undefined : { kind: "jump", chain: raw.name };
}

function portsAndRandom(options: ReadonlyMap<string, RawOption>): PortsAndRandom {
  const toPorts = options.get("--to-ports")?.values[0];
  return { ...(toPorts === undefined ? {} : { toPorts }), ...(options.has("--random") ? { random: true } : {}) };
}

function renderPortsAndRandom({ toPorts, random }: PortsAndRandom): string {
  const ports = toPorts === undefined ? "" : ` --to-ports ${checkValue("ports", toPorts)}`;
  return `${ports}${random === true ? " --random" : ""}`;
}

function verdictOf<Kind extends "accept" | "drop" | "return">(
  kind: Kind,
  name: string,
): TargetKind<VerdictTarget<Kind>> {
  return { name, options: {}, parse: ({ options }) => (options.length === 0 ? { kind } : undefined), render: () => "" };
}
