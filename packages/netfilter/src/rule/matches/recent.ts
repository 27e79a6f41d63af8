import { checkInteger, checkName, checkValue } from "../check.ts";
import { parseUnsigned } from "../numbers.ts";
import { typedOptions } from "../options.ts";
import { Problem } from "../problem.ts";
import type { IPFamily } from "../values.ts";
import type { MatchKind } from "./kind.ts";

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

const TYPED = {
  "--set": 0,
  "--rcheck": 0,
  "--seconds": 1,
  "--reap": 0,
  "--name": 1,
  "--mask": 1,
  "--rsource": 0,
  "--rdest": 0,
} as const;

const FULL_MASK: Readonly<Record<IPFamily, string>> = {
  IPv4: "255.255.255.255",
  IPv6: "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
};

export const recent: MatchKind<RecentMatch> = {
  modules: ["recent"],
  options: { ...TYPED, "--update": 0, "--remove": 0, "--hitcount": 1, "--rttl": 0 },
  parse(raw, family) {
    const options = typedOptions(raw, Object.keys(TYPED));
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
      mask: options.get("--mask")?.values[0] ?? FULL_MASK[family],
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
