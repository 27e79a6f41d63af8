import type { RawModule, RawOption } from "./collect.ts";
import { parseMark } from "./numbers.ts";
import { rawArgs, typedOptions } from "./options.ts";
import { Problem } from "./problem.ts";
import type { IPFamily, Target } from "./rule.ts";
import { OTHER_TARGETS } from "./vocabulary.ts";

const DEFAULT_REJECT: Readonly<Record<IPFamily, string>> = {
  IPv4: "icmp-port-unreachable",
  IPv6: "icmp6-port-unreachable",
};

/**
 * The target in its type, or word for word where the type can't say it. A name that is no target of the kernel is a chain's.
 *
 * @throws Problem for values that iptables refuses
 */
export function parseTarget(raw: RawModule, family: IPFamily): Target {
  return typedTarget(raw, family) ?? { kind: "unknown", name: raw.name, args: rawArgs(raw) };
}

function typedTarget(raw: RawModule, family: IPFamily): Target | undefined {
  if (raw.options.some((option) => option.negated)) return undefined;
  switch (raw.name) {
    case "ACCEPT":
      return bare(raw, { kind: "accept" });
    case "DROP":
      return bare(raw, { kind: "drop" });
    case "RETURN":
      return bare(raw, { kind: "return" });
    case "REJECT":
      return reject(raw, family);
    case "DNAT":
      return dnat(raw);
    case "MASQUERADE":
      return masquerade(raw);
    case "REDIRECT":
      return redirect(raw);
    case "MARK":
      return mark(raw);
    default:
      return OTHER_TARGETS.has(raw.name) ? undefined : bare(raw, { kind: "jump", chain: raw.name });
  }
}

function bare(raw: RawModule, target: Target): Target | undefined {
  return raw.options.length === 0 ? target : undefined;
}

function reject(raw: RawModule, family: IPFamily): Target | undefined {
  const options = typedOptions(raw, ["--reject-with"]);
  if (options === undefined) return undefined;
  return { kind: "reject", with: options.get("--reject-with")?.values[0] ?? DEFAULT_REJECT[family] };
}

function dnat(raw: RawModule): Target | undefined {
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
}

function masquerade(raw: RawModule): Target | undefined {
  const options = typedOptions(raw, ["--to-ports", "--random", "--random-fully"]);
  if (options === undefined) return undefined;
  return {
    kind: "masquerade",
    ...portsAndRandom(options),
    ...(options.has("--random-fully") ? { randomFully: true } : {}),
  };
}

function redirect(raw: RawModule): Target | undefined {
  const options = typedOptions(raw, ["--to-ports", "--random"]);
  return options === undefined ? undefined : { kind: "redirect", ...portsAndRandom(options) };
}

function portsAndRandom(options: ReadonlyMap<string, RawOption>): { toPorts?: string; random?: true } {
  const toPorts = options.get("--to-ports")?.values[0];
  return { ...(toPorts === undefined ? {} : { toPorts }), ...(options.has("--random") ? { random: true } : {}) };
}

/** Every way to set a mark is one of `mark = (mark & ~mask) ^ value` (xt_MARK). */
function mark(raw: RawModule): Target | undefined {
  const [option, ...more] = raw.options;
  if (option === undefined) throw new Problem("-j MARK needs an option");
  if (more.length > 0) throw new Problem("-j MARK takes one option");
  const { value, mask } = parseMark(option.values[0] ?? "");
  switch (option.name) {
    case "--set-xmark":
      return { kind: "mark", value, mask: mask ?? 0xffffffff };
    case "--set-mark":
      return { kind: "mark", value, mask: mask === undefined ? 0xffffffff : (mask | value) >>> 0 };
    case "--or-mark":
      return { kind: "mark", value, mask: value };
    case "--and-mark":
      return { kind: "mark", value: 0, mask: ~value >>> 0 };
    case "--xor-mark":
      return { kind: "mark", value, mask: 0 };
    default:
      return undefined;
  }
}
