import { hostCIDR } from "@fairlead/base";
import { checkCIDR, checkInterface } from "../rule/check.ts";
import type { LinkCommand } from "./links.ts";

/**
 * One line for `ip -batch`, without its end.
 *
 * @throws RuleTextError for a device or an address that can't be written as one word
 */
export function renderLinkCommand(command: LinkCommand): string {
  const device = checkInterface(command.device);
  switch (command.kind) {
    case "add-device":
      return `link add dev ${device} type dummy`;
    case "delete-device":
      return `link del dev ${device}`;
    case "add-address":
    case "delete-address":
      return `addr ${command.kind === "add-address" ? "add" : "del"} ${checkCIDR(hostCIDR(command.address))} dev ${device}`;
  }
}
