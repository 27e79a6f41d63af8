import { hostCIDR } from "@fairlead/base";
import type { CIDRSides } from "./cidr/sides.ts";
import type { OptionsBesideCIDRs } from "./options.ts";

/**
 * Where the clients are that another network serves itself: the excluded CIDRs without the addresses of nodes and of
 * the API server in what was learned. The operator's own list is followed.
 */
export function clientSides(sides: CIDRSides, { neutralAddresses, protection }: OptionsBesideCIDRs): CIDRSides {
  let clients = sides;
  for (const address of neutralAddresses?.keys() ?? []) {
    const learned = sides.excluding(address) !== undefined && protection?.written.excluding(address) === undefined;
    if (learned) clients = clients.with(hostCIDR(address), "own");
  }
  return clients;
}
