import { UNREACHABLE } from "../../serve.ts";
import { demandHook } from "../demand.ts";
import type { Evaluate } from "./kind.ts";

export const reject: Evaluate<"reject"> = ({ with: how }, place) => {
  demandHook(place, "reject", ["PREROUTING", "INPUT", "FORWARD", "OUTPUT"]);
  if (how === "port-unreachable") return { kind: "reject", with: UNREACHABLE[place.walk.family] };
  // There is no reset to what is not TCP; the packet is dropped all the same.
  return place.walk.protocol === "tcp" ? { kind: "reject", with: "tcp-reset" } : { kind: "drop" };
};
