import { hexOf, hostHex, hostNumber, PROTOCOLS } from "@fairlead/netfilter/nft";
import { outInterface } from "../../route.ts";
import { isKnown } from "../registers.ts";
import type { Evaluate } from "./kind.ts";

const NAME_BYTES = 16;

export const meta: Evaluate<"meta"> = (expression, place) => {
  const { walk, host, registers } = place;
  if ("from" in expression) {
    if (expression.key === "nftrace") return undefined;
    const mark = registers.read(expression.from, 4);
    if (!isKnown(mark)) throw place.undecidable(registers.reason);
    walk.mark = hostNumber(mark);
    return undefined;
  }
  const { key, to } = expression;
  switch (key) {
    case "mark":
      registers.load(to, hostHex(walk.mark));
      return undefined;
    case "l4proto":
      registers.load(to, protocolHex(walk.protocol) ?? "??");
      registers.reason = `the number of the protocol ${walk.protocol} is not known`;
      return undefined;
    case "iifname":
      registers.load(to, nameHex(walk.inInterface));
      return undefined;
    case "oifname": {
      const name = outInterface(walk, host);
      if (name !== undefined) registers.load(to, nameHex(name));
      else registers.loadUnknown(to, NAME_BYTES, "the outgoing interface is not known");
      return undefined;
    }
  }
};

function protocolHex(name: string): string | undefined {
  const number = PROTOCOLS[name] ?? Number(name);
  return Number.isInteger(number) ? hexOf([number]) : undefined;
}

/** Where there is no interface the name is empty. */
function nameHex(name: string): string {
  return hexOf(new TextEncoder().encode(name)).padEnd(2 * NAME_BYTES, "0");
}
