import type { IPFamily } from "@fairlead/core";
import type { KernelReader } from "@fairlead/kernel";
import type { Environment } from "@fairlead/trace";

export interface SeenHost {
  readonly environment: Environment;
  /** Where node ports are asked for; absent: the node has none of the family. */
  readonly nodeAddress: string | undefined;
}

/** This node as a packet meets it, without what a proxy made of it. */
export async function hostOf({ addresses }: Pick<KernelReader, "addresses">, family: IPFamily): Promise<SeenHost> {
  const own = (await addresses.list()).filter((one) => one.family === family);
  const inOrder = [...own.filter(({ scope }) => scope === "global"), ...own.filter(({ scope }) => scope !== "global")];
  const [first] = inOrder;
  return {
    environment: {
      localAddresses: inOrder.map(({ address }) => address),
      redirectAddress: (name) => own.find((one) => one.interface === name)?.address,
    },
    nodeAddress: first?.scope === "global" ? first.address : undefined,
  };
}
