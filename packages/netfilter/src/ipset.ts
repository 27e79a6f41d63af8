/** ipset's sets: their definitions and members, the words of ipset for them, and how its output is read. */

import { Problem } from "./rule/options.ts";
import type { IPFamily } from "./rule/rule.ts";
import { checkName, RuleTextError } from "./rule/values.ts";

/** The types of sets that a service proxy makes; others are known by their names. */
export type SetType = "hash:ip" | "hash:ip,port" | "hash:ip,port,ip" | "hash:ip,port,net" | "bitmap:port";

/** What a set is made with. */
export interface SetDefinition {
  /** At most 31 characters. */
  readonly name: string;
  /** The type of the set. */
  readonly type: SetType;
  /** Absent for bitmap:port, which has none. */
  readonly family?: IPFamily;
  /** How many members there is room for; absent: 65,536. bitmap:port has room for every port. */
  readonly maxElements?: number;
}

/**
 * A member as `ipset save` prints it: `10.96.0.1`, `10.96.0.1,tcp:443`, `10.144.1.5,tcp:8080,10.144.1.5`,
 * `203.0.113.1,tcp:80,198.51.100.0/24` (a single host without its length), `30080`. Addresses are canonical.
 */
export type SetMember = string;

/** A set as `ipset save` gives it. Types that have no name here come as they are. */
export interface SetState {
  /** The set's name. */
  readonly name: string;
  /** The type of the set, as the kernel has it. */
  readonly type: string;
  /** Absent for types without a family. */
  readonly family?: IPFamily;
  /** Its members as ipset prints them. */
  readonly members: ReadonlySet<SetMember>;
}

/** A change of one set or member: a netlink request, or one line of `ipset restore`. */
export type SetCommand =
  | { readonly kind: "create"; readonly set: SetDefinition }
  | { readonly kind: "add" | "del"; readonly set: string; readonly member: SetMember }
  | { readonly kind: "flush" | "destroy"; readonly set: string };

/** IPSET_MAXNAMELEN (linux/netfilter/ipset/ip_set.h) less its closing zero. */
export const MAX_SET_NAME_LENGTH = 31;

/**
 * One line for `ipset restore`, without its end. Sets are made with the sizes that kube-proxy gives them, which are
 * ipset's defaults, unless the definition asks for more room.
 *
 * @throws RuleTextError for a name or member that can't be written as one word
 */
export function renderSetCommand(command: SetCommand): string {
  switch (command.kind) {
    case "create":
      return `create ${checkName("set", command.set.name)} ${sizes(command.set)}`;
    case "add":
    case "del":
      return `${command.kind} ${checkName("set", command.set)} ${checkMember(command.member)}`;
    case "flush":
    case "destroy":
      return `${command.kind} ${checkName("set", command.set)}`;
  }
}

/**
 * One line of `ipset restore`; `renderSetCommand` read backwards.
 *
 * @throws Problem for a line that is not a command, and for types of sets that have no name here
 */
export function parseSetCommand(line: string): SetCommand {
  const [kind, name, word, ...options] = line.split(" ");
  if (name === undefined || name === "") throw new Problem(`no set is named: ${line}`);
  if (kind === "flush" || kind === "destroy") return { kind, set: name };
  if (word === undefined) throw new Problem(`no type or member: ${line}`);
  if (kind === "add" || kind === "del") return { kind, set: name, member: word };
  if (kind !== "create" || !isSetType(word)) throw new Problem(`no command of ipset restore: ${line}`);
  return { kind, set: { name, type: word, ...familyOption(options), ...roomOption(options) } };
}

/**
 * Puts sets together from the lines of `ipset save`, which prints each set's create line and then its members. Options
 * of members (timeout, comment, …) are left out.
 */
export class SetReader {
  #open: { readonly set: Omit<SetState, "members">; readonly members: Set<string> } | undefined;

  /**
   * @returns the set that this line shows to be complete
   * @throws Problem for a line that `ipset save` does not print
   */
  push(line: string): SetState | undefined {
    if (line === "") return undefined;
    const [command, name, word, ...options] = line.split(" ");
    if (name === undefined || word === undefined) throw new Problem(`no line of ipset save: ${line}`);
    if (command === "add") {
      this.#add(name, word, line);
      return undefined;
    }
    if (command !== "create") throw new Problem(`no line of ipset save: ${line}`);
    const complete = this.end();
    const set = { name, type: word, ...familyOption(options) };
    this.#open = { set, members: new Set() };
    return complete;
  }

  /** @returns the last set */
  end(): SetState | undefined {
    const open = this.#open;
    this.#open = undefined;
    return open && { ...open.set, members: open.members };
  }

  #add(name: string, member: string, line: string): void {
    if (this.#open?.set.name !== name) throw new Problem(`a member of a set that has not begun: ${line}`);
    this.#open.members.add(member);
  }
}

const MEMBER = /^[0-9a-fA-F.:]+(?:,(?:(?:tcp|udp|sctp):\d{1,5})(?:,[0-9a-fA-F.:]+(?:\/\d{1,3})?)?)?$/;

function sizes({ type, family, maxElements = DEFAULT_MAX_ELEMENTS }: SetDefinition): string {
  if (type === "bitmap:port") return "bitmap:port range 0-65535";
  return `${type} family ${family === "IPv6" ? "inet6" : "inet"} hashsize 1024 maxelem ${maxElements}`;
}

function checkMember(member: string): string {
  if (!MEMBER.test(member)) throw new RuleTextError("set member", member, "must be as ipset save prints it");
  return member;
}

const TYPES: ReadonlySet<string> = new Set<SetType>([
  "hash:ip",
  "hash:ip,port",
  "hash:ip,port,ip",
  "hash:ip,port,net",
  "bitmap:port",
]);

function isSetType(word: string): word is SetType {
  return TYPES.has(word);
}

/** ipset's default, and kube-proxy's. */
export const DEFAULT_MAX_ELEMENTS = 65_536;

/** `maxelem 131072` among the options of a create line. */
function roomOption(options: readonly string[]): Pick<SetDefinition, "maxElements"> {
  const at = options.indexOf("maxelem");
  const maxElements = Number(options[at + 1]);
  return at === -1 || maxElements === DEFAULT_MAX_ELEMENTS ? {} : { maxElements };
}

/** `family inet6` among the options of a create line. */
function familyOption(options: readonly string[]): Pick<SetDefinition, "family"> {
  const at = options.indexOf("family");
  if (at === -1) return {};
  return { family: options[at + 1] === "inet6" ? "IPv6" : "IPv4" };
}
