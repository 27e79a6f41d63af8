import type { ModeSemantics } from "./mode-semantics.ts";

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
  /** Whether it tells ClusterIPs that no service has (`NodePlan.serviceCIDRs`); absent: it has no use for them. */
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
