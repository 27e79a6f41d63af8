import { Problem } from "../rule/problem.ts";
import type { SetCommand, SetDefinition, SetType } from "./ipset.ts";

const TYPES: ReadonlySet<string> = new Set<SetType>([
  "hash:ip",
  "hash:ip,port",
  "hash:ip,port,ip",
  "hash:ip,port,net",
  "bitmap:port",
]);

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
  return { kind, set: { name, type: word, ...familyOption(options) } };
}

function isSetType(word: string): word is SetType {
  return TYPES.has(word);
}

/** `family inet6` among the options of a create line. */
export function familyOption(options: readonly string[]): Pick<SetDefinition, "family"> {
  const at = options.indexOf("family");
  if (at === -1) return {};
  return { family: options[at + 1] === "inet6" ? "IPv6" : "IPv4" };
}
