import { checkName } from "../rule/check.ts";
import { RuleTextError } from "../rule/errors.ts";
import type { SetCommand, SetDefinition } from "./ipset.ts";

const MEMBER = /^[0-9a-fA-F.:]+(?:,(?:(?:tcp|udp|sctp):\d{1,5})(?:,[0-9a-fA-F.:]+(?:\/\d{1,3})?)?)?$/;

/** IPSET_MAXNAMELEN (linux/netfilter/ipset/ip_set.h) less its closing zero. */
export const MAX_SET_NAME_LENGTH = 31;

/**
 * One line for `ipset restore`, without its end. Sets are made with the sizes that kube-proxy gives them, which are
 * ipset's defaults.
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

function sizes({ type, family }: SetDefinition): string {
  if (type === "bitmap:port") return "bitmap:port range 0-65535";
  return `${type} family ${family === "IPv6" ? "inet6" : "inet"} hashsize 1024 maxelem 65536`;
}

function checkMember(member: string): string {
  if (!MEMBER.test(member)) throw new RuleTextError("set member", member, "must be as ipset save prints it");
  return member;
}
