import { bytesText } from "@fairlead/base";
import { bytesOf } from "@fairlead/netfilter/nft";
import { translate } from "../../targets.ts";
import { demandNat } from "../demand.ts";
import { isKnown } from "../registers.ts";
import type { Evaluate } from "./kind.ts";

const ADDRESS_BYTES = { ip: 4, ip6: 16 } as const;

export const nat: Evaluate<"nat"> = ({ family, address, port }, place) => {
  const { walk, registers } = place;
  demandNat(place, "dnat", ["PREROUTING", "OUTPUT"]);
  const to = registers.read(address, ADDRESS_BYTES[family]);
  const behind = port === undefined ? undefined : registers.read(port, 2);
  if (!isKnown(to + (behind ?? ""))) throw place.undecidable(registers.reason);
  const hasPort = behind !== undefined && walk.destination.port !== undefined;
  translate(walk, bytesText(bytesOf(to)), hasPort ? Number.parseInt(behind, 16) : undefined);
  return { kind: "accept" };
};
