import { checkChainName, checkValue } from "./check.ts";
import { hex } from "./render-match.ts";
import { renderWords } from "./render-words.ts";
import type { Target } from "./rule.ts";

/** ` -j TARGET --option value`, with the leading space. */
export function renderTarget(target: Target): string {
  switch (target.kind) {
    case "jump":
      return ` -j ${checkChainName(target.chain)}`;
    case "goto":
      return ` -g ${checkChainName(target.chain)}`;
    case "accept":
      return " -j ACCEPT";
    case "drop":
      return " -j DROP";
    case "return":
      return " -j RETURN";
    case "reject":
      return ` -j REJECT --reject-with ${checkValue("reject type", target.with)}`;
    case "dnat":
      return ` -j DNAT --to-destination ${checkValue("destination", target.to)}${flag(target.random, "--random")}${flag(target.persistent, "--persistent")}`;
    case "masquerade":
      return ` -j MASQUERADE${toPorts(target.toPorts)}${flag(target.random, "--random")}${flag(target.randomFully, "--random-fully")}`;
    case "redirect":
      return ` -j REDIRECT${toPorts(target.toPorts)}${flag(target.random, "--random")}`;
    case "mark":
      return ` -j MARK --set-xmark ${hex("mark", target.value)}/${hex("mask", target.mask)}`;
    case "unknown":
      return ` -j ${checkValue("target", target.name)}${renderWords(target.args)}`;
  }
}

function flag(set: boolean | undefined, option: string): string {
  return set === true ? ` ${option}` : "";
}

function toPorts(ports: string | undefined): string {
  return ports === undefined ? "" : ` --to-ports ${checkValue("ports", ports)}`;
}
