import { masqueradeWalk } from "../../targets.ts";
import { demandNat } from "../demand.ts";
import type { Evaluate } from "./kind.ts";

export const masq: Evaluate<"masq"> = (_, place) => {
  demandNat(place, "masquerade", ["POSTROUTING"]);
  masqueradeWalk(place.walk, place.host);
  return { kind: "accept" };
};
