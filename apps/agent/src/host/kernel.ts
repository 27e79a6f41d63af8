import type { IPFamily } from "@fairlead/core";
import type {
  Conntrack,
  IpsetClient,
  IpvsadmClient,
  LinksClient,
  Modules,
  Nfacct,
  NodeAddresses,
  Sysctl,
} from "@fairlead/kernel";
import type { IptablesPort } from "@fairlead/netfilter";

/** All that the agent asks of the kernel. Production has the clients of `@fairlead/kernel`, tests its fakes. */
export interface Kernel {
  /**
   * The iptables of a family.
   *
   * @throws IptablesError when the tools are missing or not permitted
   */
  iptables(family: IPFamily): Promise<IptablesPort>;
  /**
   * The iptables of a family in each variant that this node has something in.
   *
   * @throws IptablesError when the tools are missing or not permitted
   */
  iptablesInUse(family: IPFamily): Promise<readonly IptablesPort[]>;
  /** What ipvs mode programs beside iptables, for both families. */
  readonly ipvs: { readonly servers: IpvsadmClient; readonly sets: IpsetClient; readonly links: LinksClient };
  readonly modules: Modules;
  readonly addresses: NodeAddresses;
  readonly conntrack: Conntrack;
  readonly nfacct: Nfacct;
  readonly sysctl: Sysctl;
  /**
   * Removes the tables of kube-proxy's nftables mode and names them.
   *
   * @throws CommandError when nft fails
   */
  removeNftTables(): Promise<readonly string[]>;
  /** The address that packets to elsewhere would leave from; undefined: there is no route. */
  sourceAddress(family: IPFamily): Promise<string | undefined>;
}

/**
 * The same kernel, whose iptables are opened once: opening again would find out once more which variant the host uses,
 * by reading all the rules that there are by then. What failed is tried again.
 */
export function openedOnce(kernel: Kernel): Kernel {
  const opened = new Map<IPFamily, Promise<IptablesPort>>();
  return {
    ...kernel,
    iptables(family) {
      const known = opened.get(family);
      if (known !== undefined) return known;
      const opening = kernel.iptables(family);
      opened.set(family, opening);
      opening.catch(() => opened.delete(family));
      return opening;
    },
  };
}
