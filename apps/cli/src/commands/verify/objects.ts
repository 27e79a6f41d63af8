import { familyOf } from "@fairlead/base";
import type { IPFamily } from "@fairlead/core";
import type { IpvsObjects } from "@fairlead/inspect";

/** What one family has of ipvs mode's objects; sets of no family belong to both. */
export function ofFamily({ servers, sets, addresses }: IpvsObjects, family: IPFamily): IpvsObjects {
  return {
    servers: servers.filter((server) => server.family === family),
    sets,
    addresses: addresses && new Set([...addresses].filter((address) => familyOf(address) === family)),
  };
}
