import type { Attributes } from "@fairlead/netfilter/netlink";
import { COUNTER, type NftFamily, nftNumbers } from "@fairlead/netfilter/nft";
import { NetlinkError } from "../netlink/error.ts";
import type { NetlinkSocket } from "../netlink/socket.ts";
import { listing } from "./listing.ts";
import { encodeDumpOfChain } from "./requests.ts";

const { EXPRESSION, RULE } = nftNumbers;

/** `NftablesClient.counted` */
export async function counted(
  socket: NetlinkSocket,
  family: NftFamily,
  table: string,
  chain: string,
): Promise<number | undefined> {
  try {
    const what = `reading the counters of chain ${family} ${table} ${chain}`;
    const rules = await listing(socket, encodeDumpOfChain(family, table, chain), what, (of) => [
      of.list(RULE.expressions).map((one) => packetsOf(one.text(EXPRESSION.name), one.nested(EXPRESSION.data))),
    ]);
    return rules.length === 0 ? undefined : rules.flat().reduce((sum, packets) => sum + packets, 0);
  } catch (error) {
    if (error instanceof NetlinkError && error.code === "ENOENT") return undefined;
    throw error;
  }
}

function packetsOf(name: string | undefined, data: Attributes | undefined): number {
  return name === "counter" ? Number(data?.u64(COUNTER.packets) ?? 0n) : 0;
}
