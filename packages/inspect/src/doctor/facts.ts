import type { Problem } from "@fairlead/core";
import type { OwnershipRow, PodNetwork } from "@fairlead/intake";

/**
 * What a node's doctor knows of it. Undefined stands for what could not be looked at, for want of rights or of a
 * program: its result is "unknown", never "good".
 */
export interface NodeFacts {
  /** Of the mode that should run here. */
  readonly needs: ModeNeeds;
  readonly mayReadRules: boolean;
  /** The iptables that this host uses; absent: there is none. */
  readonly variant?: "nft" | "legacy";
  /** How many rules each variant that is installed holds, of the proxy (KUBE-…) and of others. */
  readonly rules: readonly RuleCount[];
  /** What other networks left in the kernel that serves services, or rejects them. */
  readonly others: OthersFacts;
  /** Where node-local DNS answers, by the rules that it makes. Absent: they may not be read. */
  readonly nodeLocalDNS?: readonly NodeLocalDNS[];
  /** Names of tables that nft has alongside those of iptables: `ip kube-proxy`. */
  readonly nftTables: readonly string[] | undefined;
  /** The service proxy name of the agent that is looked at; absent: it is the node's first proxy. */
  readonly serviceProxyName?: string;
  /** Agents with a service proxy name that have tables here, this one left out. */
  readonly instances?: readonly Instance[];
  /** By path below /proc/sys; absent keys are not there. */
  readonly sysctls: Readonly<Record<string, string | undefined>>;
  readonly kernel: Readonly<Record<string, boolean | undefined>>;
  /** Processes that serve as a proxy on this node, as far as they are seen. */
  readonly proxies: readonly { readonly pid: number; readonly name: string }[];
  /** What the running proxy says of itself; absent: none answers. */
  readonly running?: {
    readonly mode: string;
    /** The tables of nftables that its mode programs, by name. */
    readonly nftTables: readonly string[];
    /** Objects that it leaves out, since the kernel refuses them; absent: it does not say, as kube-proxy. */
    readonly refused?: number | undefined;
  };
  /** Whether every process of the node can be seen. */
  readonly allProcesses: boolean;
  /** CIDRs of the node's routes, defaults left out. */
  readonly routes: readonly string[] | undefined;
  /** The node's own addresses are missing in it where they could not be read. */
  readonly cidrs: readonly NamedCIDR[];
  /** Whether the mode distinguishes clients at an address, as `excluded-clients` wants; absent: it need not. */
  readonly distinguishesClients?: boolean;
  /**
   * Interfaces whose clients are answered by them though the node has its default route elsewhere (`replyVia`), with
   * rp_filter as the kernel takes it: 0 off, 1 strict, 2 loose. Absent: there are none.
   */
  readonly uplinks?: readonly { readonly interface: string; readonly filter: number | undefined }[] | undefined;
  /** Absent: the fast path is not configured, or the mode has none. */
  readonly fastPath?: FastPathFacts | undefined;
  readonly api: ApiFacts;
  /** Services in networks that nodes do not share. Absent: this was not asked. */
  readonly isolated?: readonly IsolatedService[];
  /** What of Services and of this Node is valid and does other than it seems to ask for. Absent: this was not asked. */
  readonly notices?: readonly Problem[];
  /** Absent: nothing is excluded or learned, or no API server was asked. */
  readonly networks?: NetworksFacts;
}

/** A Service whose pods are in a network that nodes do not share. */
export interface IsolatedService {
  readonly service: string;
  readonly network: Pick<PodNetwork, "kind" | "name">;
  /** An agent with this configuration serves some of it all the same. */
  readonly isServed: boolean;
}

export interface FastPathFacts {
  /** Whether the kernel has them. */
  readonly flowtables: boolean | undefined;
  /** What its test came to since this node booted. none: there is no result; unknown: it may not be read. */
  readonly test:
    | { readonly kind: "passed" | "none" | "unknown" }
    | { readonly kind: "failed"; readonly reason: string };
  /** Those in our flowtable. */
  readonly devices: readonly string[] | "no flowtable" | undefined;
  /** Why `devices: auto` disables it; absent: it does not. */
  readonly auto?: string;
  /** Devices that the configuration selects and that the agent leaves out. */
  readonly refused: readonly { readonly device: string; readonly reason: string }[];
  /** Flowtables of other programs that have some of our devices. */
  readonly others: readonly {
    /** `ip calico` */
    readonly table: string;
    readonly flowtable: string;
    readonly devices: readonly string[];
  }[];
}

export interface NetworksFacts {
  /** Services that the API server calls from a node. */
  readonly called: {
    /** Nothing here answers these, with the objects that name them: `ValidatingWebhookConfiguration/vault`. */
    readonly unanswered: readonly { readonly service: string; readonly objects: readonly string[] }[];
    /** Resources that may not be listed, so that some may be missing: `apiservices.apiregistration.k8s.io`. */
    readonly unlisted: readonly string[];
  };
  /** What the agents of all nodes have decided; `problem`: they cannot be found. */
  readonly agents: readonly AgentDecisions[] | { readonly problem: string };
}

/** What the agent of a node has decided; `problem`: it does not answer. */
export type AgentDecisions = { readonly node: string } & (
  | {
      readonly services: readonly Pick<
        OwnershipRow,
        "service" | "ipFamily" | "ownership" | "ownEndpoints" | "excludedEndpoints"
      >[];
      readonly cidrs: readonly { readonly cidr: string; readonly source: string; readonly kept?: true }[];
    }
  | { readonly problem: string }
);

/** An agent with a service proxy name, by what it has in the kernel. */
export interface Instance {
  readonly name: string;
  /** Among `NodeFacts.nftTables`. */
  readonly tables: readonly string[];
  /** Undefined: whether it runs cannot be seen from here. */
  readonly running: boolean | undefined;
}

export interface ModeNeeds {
  /** The iptables tables that it writes; empty: it works without iptables. */
  readonly iptables: readonly string[];
  readonly kernelParts: readonly KernelPart[];
  readonly sysctls: readonly { readonly key: string; readonly value: string; readonly why: string }[];
  /** The tables of nftables that it programs, by name; absent: none. */
  readonly nftTables?: readonly string[];
}

export interface KernelPart {
  readonly name: string;
  /** What to do where it is missing. */
  readonly remedy: string;
}

export interface RuleCount {
  readonly variant: "nft" | "legacy";
  /** False: its rules may not be read, and the counts say nothing. */
  readonly readable: boolean;
  /** Whether kubelet's chains are there, by which every program knows the variant of this host (KEP-3178). */
  readonly hinted: boolean;
  readonly proxy: number;
  readonly others: number;
  /** Policies of filter's built-in chains that drop. */
  readonly dropping: readonly string[];
}

export interface OthersFacts {
  /** kube-ovn's rules that reject unmarked packets to services, as iptables-save lists them. */
  readonly kubeOVNRejects: readonly string[] | undefined;
  /** Whether a proxy's rules ask ipsets of services, as ipvs mode's do. */
  readonly servesBySets: boolean | undefined;
  readonly ciliumChains: readonly string[] | undefined;
  /** BPF maps that are pinned where tc's programs have theirs, by name. */
  readonly pinnedMaps: readonly string[] | undefined;
}

/** An address at which node-local DNS keeps packets from connection tracking, and so from services. */
export interface NodeLocalDNS {
  readonly address: string;
  /** What has its rules: `iptables-nft`. */
  readonly tool: string;
  /** Those that have the address. Undefined: they cannot be seen. */
  readonly devices: readonly string[] | undefined;
}

export interface NamedCIDR {
  readonly cidr: string;
  readonly use: "pods" | "excluded pods" | "services" | "node";
  /** Where it was learned: `kube-ovn-subnets (Subnet/ovn-default)`; absent: it was written. */
  readonly source?: { readonly id: string; readonly objects: readonly string[] };
}

/** What a cluster's object says; `forbidden`: it may not be read. */
export type ObjectReading<T> =
  | { readonly kind: "absent" }
  | { readonly kind: "forbidden" }
  | { readonly kind: "found"; readonly value: T };

/** FelixConfiguration, Calico's settings on nodes. */
export interface CalicoBPF {
  readonly enabled: boolean;
  /** It deletes kube-proxy's chains and tables; on unless it says otherwise. */
  readonly cleansUp: boolean;
}

export type ApiFacts =
  | { readonly kind: "unasked" }
  | { readonly kind: "unreachable"; readonly reason: string }
  | {
      readonly kind: "answers";
      readonly server: string;
      readonly denied: readonly string[];
      /** Another user than the agent's account was asked about. */
      readonly ofOther?: boolean;
      readonly calico: ObjectReading<CalicoBPF>;
      /** Cilium's `kube-proxy-replacement`, as it is written. */
      readonly cilium: ObjectReading<string>;
      /** kube-ovn's Subnets that are in a VPC. Absent: there are none, or they may not be read. */
      readonly subnets?: readonly { readonly name: string; readonly vpc: string; readonly cidr: string }[];
      /** Gateways of our controller, and why one is not programmed. Absent: none is there, or they may not be read. */
      readonly gateways?: readonly { readonly gateway: string; readonly waitsFor?: string }[];
    };
