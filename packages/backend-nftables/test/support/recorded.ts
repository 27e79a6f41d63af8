import type { BatchObject, NftBatch } from "@fairlead/netfilter/nft";
import type { NftablesPort } from "../../src/index.ts";

/** What messages were about, of all transactions that a port was given. */
export interface Recorded {
  readonly port: NftablesPort;
  readonly transactions: (readonly BatchObject[])[];
}

export function recorded(port: NftablesPort): Recorded {
  const transactions: (readonly BatchObject[])[] = [];
  return {
    transactions,
    port: {
      roomFor: (wanted) => port.roomFor(wanted),
      generation: () => port.generation(),
      table: (family, name) => port.table(family, name),
      sets: (family, table, wanted) => port.sets(family, table, wanted),
      async commit(batch) {
        transactions.push(objectsOf(batch));
        await port.commit(batch);
      },
    },
  };
}

function objectsOf(batch: NftBatch): readonly BatchObject[] {
  return Array.from({ length: batch.count }, (_, at) => batch.objectOf(at + 1)).filter((one) => one !== undefined);
}
