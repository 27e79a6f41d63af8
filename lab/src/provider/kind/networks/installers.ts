import type { Source } from "../source.ts";
import { bridge } from "./bridge.ts";
import { delegated } from "./delegated.ts";
import { flannel } from "./flannel.ts";

/** Pod networks that are made of packages and Go modules here. */
export const installers: Source["installers"] = {
  bridge,
  calico: delegated,
  flannel: flannel("vxlan"),
  "flannel:host-gw": flannel("host-gw"),
  ovn: delegated,
  ptp: delegated,
};
