/**
 * What a backend is to the core: what it does with a plan, what its mode needs, and where modes differ in meaning.
 */

import type { ForwardingPlan, PlanChange } from "./plan.ts";

/** What one sync wrote, for metrics and logs. */
export interface SyncReport {
  /** full: everything was compared or written. partial: what one change touches. */
  readonly kind: "full" | "partial";
  /**
   * Kernel objects that the plan needs in all and that this sync wrote, by the mode's own kinds (iptables: by table).
   */
  readonly objects: Readonly<Record<string, { readonly total: number; readonly written: number }>>;
  /**
   * Objects that the kernel refused where a mode has no transaction, in words for a log: what of a service needs them
   * is not served, all else is. The next full sync tries them again. Absent: none.
   */
  readonly refused?: readonly string[];
}

/** What a look at the kernel found that is not as it was programmed. */
export interface Difference {
  /** What differs, in words for a log, at least one: `chain services has other rules`. */
  readonly what: readonly string[];
  /** The processes that changed it, where the kernel says so: `nft (4711)`. */
  readonly by?: readonly string[];
  /** It has been written again; else a full sync is needed. */
  readonly repaired: boolean;
}

/**
 * A mode's kernel side for one IP family. The caller runs one call at a time and gives every change to exactly one of
 * `apply` and `sync`. After a rejected call the kernel still serves the last good state and the caller calls `sync`.
 */
export interface Backend {
  /** How the planner has to read policies for this mode. */
  readonly semantics: ModeSemantics;
  /**
   * The next call will be `sync`, with a plan that is being made or whose objects are still being read: begins to read
   * what that needs of the kernel. What a call before this one has read is kept while it is new enough.
   */
  prepare?(): void;
  /** Makes the kernel equal to the plan, whatever it holds now. Leaves what is not ours only. */
  sync(plan: ForwardingPlan): Promise<SyncReport>;
  /** Takes the kernel from the plan before `change` to `plan`; the cost follows the change. */
  apply(plan: ForwardingPlan, change: PlanChange): Promise<SyncReport>;
  /**
   * Looks whether the kernel still has what was programmed, as far as the mode looks (flushed tables). Cheap where
   * nothing has changed.
   *
   * @returns undefined: it has
   */
  difference(plan: ForwardingPlan): Promise<Difference | undefined>;
  /**
   * Looks after what has to wait, where the mode has such a thing (ipvs: destinations that drain). Absent, or
   * undefined:
   * there is nothing to look after until the next sync or change.
   *
   * @returns milliseconds until it should be called again
   */
  maintain?(): Promise<number | undefined>;
  /** Removes everything that this mode ever programs, kube-proxy's leftovers of the mode included. */
  cleanup(): Promise<void>;
}

/**
 * What holds for a mode on every node, as data. Its backend declares it; the agent, which runs the mode, and the tools,
 * which explain and check it, read it. None of them compares names of modes.
 */
export interface ModeFacts {
  /** As `mode` of KubeProxyConfiguration and `--proxy-mode` have it. */
  readonly name: string;
  /** How the planner has to read policies for the mode. */
  readonly semantics: ModeSemantics;
  /** What the node must have for the mode to work. */
  readonly needs: ModeNeeds;
  /**
   * The mode's iptables chains of fixed names, by table. Modes share names: these chains stay while the mode runs,
   * whatever is removed of another one.
   */
  readonly keeps: Readonly<Record<string, readonly string[]>>;
  /** What the mode programs, for metrics and for tools that list it. */
  readonly objects: ModeObjects;
  /** The tables of nftables that an agent with that service proxy name programs, in each family; absent: none. */
  readonly nftTables?: (serviceProxyName: string) => readonly string[];
  /** The nfacct objects that the mode's rules count packets with. */
  readonly packetCounters: PacketCounters;
  /**
   * Whether it ends connections to endpoints that are gone itself (`NodePlan.resetStaleTCP`); absent: connection
   * tracking remembers them, and their entries are deleted.
   */
  readonly endsConnections?: true;
  /** (ipvs) Packets for services are taken in by the node, and led on from there; absent: they are translated first. */
  readonly takesIn?: true;
  /** Whether both families can be synced at once; false: they have objects in common. */
  readonly familiesAtOnce: boolean;
}

/** What a mode needs of the node that it runs on. */
export interface ModeNeeds {
  /** The iptables tables that it writes in each family; empty: it works without iptables. */
  readonly iptables: readonly string[];
  /** Whether it programs the node's addresses, so that each change of them leads to a sync. */
  readonly nodeAddresses: boolean;
  /**
   * Whether it makes addresses of services the node's own, so that it has to know those of other nodes
   * (`NodePlan.otherNodes`); absent: it has no use for them.
   */
  readonly otherNodes?: boolean;
  /** Whether it recognizes ClusterIPs that no service has (`NodePlan.serviceCIDRs`); absent: it has no use for them. */
  readonly serviceCIDRs?: boolean;
  /** Alongside connection tracking, which every mode needs. */
  readonly kernelParts: readonly KernelPart[];
  /** Alongside forwarding, which every mode needs. */
  readonly sysctls: readonly NeededSysctl[];
}

/** A part of the kernel, with its program, that may be missing on a node. */
export interface KernelPart {
  /** For people: `ipset`. */
  readonly name: string;
  /** A program and its arguments: it exits with 0 where the part is there. */
  readonly probe: readonly [program: string, ...args: string[]];
  /** What to do where it is missing. */
  readonly remedy: string;
}

/** A kernel setting without which the mode does not work as it should. */
export interface NeededSysctl {
  /** Its path below /proc/sys. */
  readonly key: string;
  /** The value that it must have, as text. */
  readonly value: string;
  /** Why the mode needs it, as a sentence for people. */
  readonly why: string;
}

/** What the kinds in `SyncReport.objects` are. */
export interface ModeObjects {
  /** Kinds that are iptables tables: what is counted are rules. */
  readonly rules: readonly string[];
  /** The other kinds; absent: the mode has nothing but rules. */
  readonly own?: OwnObjects;
}

/** What a mode programs alongside iptables rules; the agent counts it in `fairlead_NAME_objects`. */
export interface OwnObjects {
  /** Values of the metric's label `kind`. */
  readonly kinds: readonly string[];
  /** What they are, for the metric's help text. */
  readonly help: string;
}

/** Names of nfacct objects; absent: the mode's rules do not count that. */
export interface PacketCounters {
  /** Packets dropped because conntrack found them invalid. */
  readonly invalidDropped?: string;
  /** Packets accepted for node ports on loopback addresses. */
  readonly localhostAccepted?: string;
}

/**
 * Where the meaning of a mode differs from another's. The backend declares it and the planner applies it, so that no
 * backend decides anything itself.
 */
export interface ModeSemantics {
  /**
   * iptables, nftables: pods and the node itself reach external frontends under Local by the cluster set. ipvs has no
   * such short cut.
   */
  readonly localSourcesShortCut: boolean;
  /**
   * A Local frontend while its local set is empty and the cluster set is not: "drop", or (ipvs) "cluster": the cluster
   * set unmasqueraded if the service uses cluster endpoints at all, else proxied to an empty local set.
   */
  readonly localWithoutEndpoints: "drop" | "cluster";
  /** No endpoint at all: "reject", or (ipvs) "empty": proxied to an empty set. */
  readonly withoutEndpoints: "reject" | "empty";
  /**
   * What `PlanCounts.noLocalEndpoints` counts; absent: service ports. (ipvs) services, however many of their ports it
   * is.
   */
  readonly noLocalCounts?: "services";
  /**
   * Whether it can serve an address to some clients and leave it to another network for others; absent: it cannot, and
   * such an address is left for all.
   */
  readonly excludesClients?: true;
  /**
   * (iptables) External addresses without endpoints are refused in INPUT and FORWARD only: what the node itself sends
   * there leaves it, and is refused by the host with the address. Absent: they are refused to all.
   */
  readonly letsNodeOut?: true;
  /** Whether it can balance by a hash of the client's address; absent: it cannot. */
  readonly sourceHash?: true;
  /**
   * Whether it can give endpoints unequal shares of the connections, and refuse a share. Absent: endpoints weigh alike,
   * but for those of weight 0, which get none.
   */
  readonly weights?: "and refusals" | "without refusals";
  /** (kernelspace) Hints for zones and nodes do not count. Absent: they do. */
  readonly ignoresHints?: true;
  /** (kernelspace) spec.loadBalancerSourceRanges cannot be enforced, and the plan has no gates. Absent: it has. */
  readonly ignoresSourceRanges?: true;
  /** (kernelspace) Node ports are served at all addresses of the node, whatever is configured. Absent: at those. */
  readonly ignoresNodePortAddresses?: true;
  /**
   * (kernelspace) Endpoints that serve while they terminate stand in for ready ones only where a Service has
   * load-balancer addresses, at its ClusterIP and at these. Absent: for all Services, at every frontend.
   */
  readonly terminatingStandIn?: "load-balancers";
  /**
   * (kernelspace) The annotation by which a Service has its node ports and load-balancer addresses served by endpoints
   * of this node only, the latter with the packet's destination kept. Absent: there is none.
   */
  readonly preserveDestination?: string;
}
