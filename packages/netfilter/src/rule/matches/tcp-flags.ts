import { RuleTextError } from "../errors.ts";
import { negation, not } from "../options.ts";
import { Problem } from "../problem.ts";
import type { RawOption } from "../raw.ts";

/** In the order in which iptables-save prints them. */
const TCP_FLAGS = ["FIN", "SYN", "RST", "PSH", "ACK", "URG"] as const;
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

/** What `--syn` is short for: the first packet of a connection. */
export const FIRST_PACKET = { asked: ["FIN", "SYN", "RST", "ACK"], set: ["SYN"] } as const satisfies TCPFlagsMatch;

/** @throws Problem for flags that TCP has not */
export function parseTCPFlags(option: RawOption): TCPFlagsMatch {
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

export function renderTCPFlags(match: TCPFlagsMatch | undefined): string {
  return match === undefined ? "" : `${not(match)} --tcp-flags ${listText(match.asked)} ${listText(match.set)}`;
}

function listText(flags: readonly TCPFlag[]): string {
  const wrong = flags.find((flag) => !TCP_FLAGS.includes(flag));
  if (wrong !== undefined) throw new RuleTextError("TCP flag", wrong, `must be one of ${TCP_FLAGS.join(", ")}`);
  return flags.length === 0 ? "NONE" : TCP_FLAGS.filter((flag) => flags.includes(flag)).join(",");
}
