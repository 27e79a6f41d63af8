/** What the server and the page say to each other: answers, and the events of the stream. */

import type { FrontendKind, IPFamily, Ownership, ServiceKey } from "@fairlead/core";
import type {
  AgentStatus,
  Diagnosis,
  Flow,
  ServiceExplanation,
  ServiceReport,
  ServiceTraffic,
  SuggestedCIDR,
} from "@fairlead/inspect";
import type { LearnedCIDR, LearnedOnce, OwnershipRow } from "@fairlead/intake";

/** What holds for as long as the console runs. */
export interface ConsoleFacts {
  readonly version: string;
  /** `manifests ./services/`, `cluster https://…` */
  readonly source: string;
  readonly node: string;
  readonly mode: string;
  /** Whether kernels and agents can be looked at. */
  readonly kernels: boolean;
}

export interface SourceAnswer {
  /** Absent: it answers. */
  readonly failing?: {
    readonly problem: "unreachable" | "refused" | "unreadable";
    /** Its base URL. */
    readonly server: string;
    readonly error: string;
    /** What is not followed meanwhile: `services`, `subnets.v1.kubeovn.io` */
    readonly resources: readonly string[];
    readonly since: number;
  };
  /** Zones and addresses of nodes are unknown. */
  readonly nodesForbidden?: true;
}

/** A field of an object that cannot be used; of one that cannot be used at all the whole of it. */
export interface UnusableRow {
  /** `EndpointSlice shop/web-1` */
  readonly object: string;
  /** When that was found. */
  readonly at: number;
  /** Path of the field, "" for the whole object. */
  readonly field: string;
  /** As JSON, cut; "" where there is none. */
  readonly value: string;
  readonly why: string;
  /** Of manifests, where it is known. */
  readonly file?: string;
}

export interface UnusableAnswer {
  /** All of them. */
  readonly objects: number;
  /** Of the first of them. */
  readonly rows: readonly UnusableRow[];
}

export interface StreamEvents {
  /** The beginning of everything; what the page had before does not count anymore. */
  readonly begin: {
    readonly stream: string;
    readonly facts: ConsoleFacts;
    readonly nodes: readonly NodeRow[];
    readonly services: number;
    readonly objectsAt: number;
    readonly unusable: UnusableAnswer;
    readonly source: SourceAnswer;
  };
  /** Comes before the beginning as well, as long as the objects are not known. */
  readonly source: SourceAnswer;
  /** Objects that cannot be read, or not whole: all of them anew. */
  readonly unusable: UnusableAnswer;
  /** Services that came or changed, and those that are gone. */
  readonly services: {
    readonly objectsAt: number;
    readonly rows: readonly ServiceRow[];
    readonly gone: readonly ServiceKey[];
  };
  /** Nodes that came or changed, and those that are gone. */
  readonly nodes: { readonly rows: readonly NodeRow[]; readonly gone: readonly string[] };
}

export type StreamEvent = {
  [K in keyof StreamEvents]: { readonly name: K; readonly data: StreamEvents[K] };
}[keyof StreamEvents];

/** One line of the list of services. */
export interface ServiceRow {
  readonly service: ServiceKey;
  readonly owners: Readonly<Partial<Record<IPFamily, Ownership>>>;
  /** `10.96.0.10:80`, `node port 30080`; with the protocol where it is not TCP. */
  readonly frontends: readonly string[];
  /** Distinct addresses of endpoints in slices, ready or not. */
  readonly endpoints: number;
  readonly ready: number;
  /** Ready ones on the node that the console looks from. */
  readonly local: number;
  /** Terminating ones that still serve. */
  readonly draining: number;
  /** When the Service was created, milliseconds since the epoch; absent: unknown, as in manifests. */
  readonly created?: number;
}

/** A family of a node's kernel compared with the plan. */
export interface FamilyFindings {
  readonly family: IPFamily;
  readonly services: readonly ServiceReport[];
}

/** What a look at one thing came to; until the first answer only since when it is asked for. */
export type ReadResult<T> =
  | { readonly state: "asking"; readonly at: number }
  | { readonly state: "read"; readonly at: number; readonly tookMs: number; readonly value: T }
  | { readonly state: "failed"; readonly at: number; readonly tookMs: number; readonly error: string };

export interface NodeRow {
  readonly node: string;
  readonly zone?: string;
  readonly addresses: readonly string[];
  /** It was there when the console looked from it first; its plan is by what was known of it. */
  readonly deleted?: true;
  /** Absent: not asked for, or nothing can be read. */
  readonly kernel?: ReadResult<readonly FamilyFindings[]>;
  readonly agent?: ReadResult<AgentStatus>;
  readonly traffic?: ReadResult<NodeTraffic>;
}

/** The connections with services that a node tracks, summed up. */
export interface NodeTraffic {
  /** What has come since the look before; absent: there was none, or it is too long ago. */
  readonly since?: FlowsSince;
  /** Those of most connections first; those of the services that are left out come as one, without a service. */
  readonly ways: readonly TrafficWay[];
}

/** The connections of a service that came by one kind of frontend and went to one node. */
export interface TrafficWay {
  readonly frontend: FrontendKind;
  /** "": other services. */
  readonly service: ServiceKey | "";
  /** "": none is known; the connection was not translated here. */
  readonly node: string;
  /** Their endpoints are gone: they hang. */
  readonly gone: boolean;
  readonly connections: number;
  /** In both directions; absent: the kernel does not count. */
  readonly bytes?: number;
}

/** `GET api/service`: as `fairlead explain -o json` has it. */
export interface ServiceAnswer {
  readonly planAt: number;
  readonly explanation: ServiceExplanation;
  /** Of the CIDRs that decide whose it is those that were learned, with their objects and since when. */
  readonly learnedFrom: readonly LearnedCIDR[];
  /** As `fairlead ownership --watch` would have reported them, the oldest first. */
  readonly owners: { readonly since: number; readonly changes: readonly OwnerChange[] };
}

/** Another owner of a service in a family; without `before` it was not there, without `after` it is gone. */
export interface OwnerChange {
  readonly at: number;
  readonly family: IPFamily;
  readonly before?: Ownership;
  readonly after?: Ownership;
  readonly why?: string;
}

/** `GET api/search`: the services that match, in the order of their names. */
export interface SearchAnswer {
  readonly services: readonly ServiceKey[];
}

/** `GET api/flows`: of the connections that a node tracks as much as anybody reads. */
export interface FlowsAnswer {
  readonly node: string;
  readonly at: number;
  /** Absent: there are too many connections to count. */
  readonly counts?: FlowCounts;
  /** As `fairlead top -o json` has it. */
  readonly traffic: readonly ServiceTraffic[];
  /** As `fairlead flows -o json` has them; those that hang come first. */
  readonly flows: readonly Flow[];
  /** How many of each are left out here. */
  readonly more: { readonly services: number; readonly flows: number };
}

/**
 * Counted by all looks together, as a counter of Prometheus: two answers say what came between them, whichever other
 * page looks meanwhile, and also when an answer between them was lost.
 */
export interface FlowCounts {
  /** Of the first look, milliseconds since the epoch: another one means that the counts began anew. */
  readonly began: number;
  /** Connections that were not there at the look before. */
  readonly opened: number;
  /** In both directions; absent: the kernel does not count. */
  readonly bytes?: number;
}

/** Connections that were not there at the look before, and what all have carried since. */
export interface FlowsSince {
  readonly ms: number;
  readonly opened: number;
  /** In both directions; absent: the kernel does not count. */
  readonly bytes?: number;
}

/** `GET api/doctor`: as `fairlead doctor -o json` has it. */
export interface DoctorAnswer {
  readonly node: string;
  readonly at: number;
  readonly diagnoses: readonly Diagnosis[];
}

/** `GET api/networks`: as `fairlead ownership -o json` has it, with the CIDRs that were given. */
export interface NetworksAnswer {
  readonly planAt: number;
  readonly cidrs: readonly { readonly cidr: string; readonly whose: "ours" | "another"; readonly from: string }[];
  /** What this console has learned of networks' objects, as the agents do; absent: they learn none. */
  readonly learned?: LearnedOnce["report"];
  readonly services: readonly OwnershipRow[];
  readonly suggestedCIDRs: readonly SuggestedCIDR[];
}

/** `GET api/networks/learned`: what the agent of a node has learned, as `fairlead ownership --on NODE -o json`. */
export interface LearnedAnswer {
  readonly node: string;
  readonly at: number;
  /** Absent: it learns none. */
  readonly networks?: LearnedOnce["report"];
}

/** One rule on a packet's way. */
export interface TraceVisit {
  readonly hook: string;
  readonly table: string;
  readonly chain: string;
  /** Counted from 1. */
  readonly rule: number;
  readonly text: string;
}

export interface TraceOutcome {
  readonly probability: number;
  readonly verdict: "accept" | "reject" | "drop";
  readonly destination: { readonly address: string; readonly port?: number };
  readonly masqueraded: boolean;
  readonly visits: readonly TraceVisit[];
}

/** `GET api/trace`: as `fairlead trace -o json` has it. */
export interface TraceAnswer {
  readonly at: number;
  /** `kernel of node-a`, `plan of node-a` */
  readonly source: string;
  readonly command: string;
  readonly trace: {
    readonly packet: {
      readonly source: string;
      readonly destination: string;
      readonly dport?: number;
      readonly protocol: string;
    };
    readonly outcomes: readonly TraceOutcome[];
    readonly cannotTell: readonly {
      readonly probability: number;
      readonly problem: string;
      readonly visits: readonly TraceVisit[];
    }[];
  };
}

/** Where packets end, with shares; or why that is unknown. */
export type FateData = { readonly ways: Readonly<Record<string, number>> } | { readonly problem: string };

export interface OwnerMove {
  readonly service: ServiceKey;
  readonly family: IPFamily;
  readonly before: Ownership;
  readonly after: Ownership;
  readonly why: string;
}

type ReportedCIDR = LearnedOnce["report"]["cidrs"][number];

/**
 * A learned CIDR that something else would become of; without `before` no object defines it now, without `after` none
 * would.
 */
export interface CIDRMove extends Pick<ReportedCIDR, "cidr" | "side" | "source" | "objects" | "why"> {
  readonly before?: ReportedCIDR["stage"];
  readonly after?: ReportedCIDR["stage"];
}

/** What would be learned of networks that is not learned now. */
export interface WhatIfNetworks {
  readonly cidrs: readonly CIDRMove[];
  /** What is wrong with objects: `Subnet/typo: spec.cidrBlock …` */
  readonly problems: readonly string[];
  /** Sources that cannot be read, and why: what they say is in neither plan. */
  readonly unread: readonly string[];
}

/** `POST api/what-if`: the changed services, and what `fairlead diff --traffic-only -o json` says of them by family. */
export interface WhatIfAnswer {
  readonly planAt: number;
  readonly node: string;
  /** Those of which anything is planned differently. */
  readonly services: readonly string[];
  readonly owners: readonly OwnerMove[];
  /** Absent: nothing is learned, neither without nor with the change. */
  readonly networks?: WhatIfNetworks;
  /** Absent: the services are more than are compared while a user waits. */
  readonly families?: readonly {
    readonly family: IPFamily;
    readonly traffic: {
      readonly compared: number;
      readonly changes: readonly {
        readonly destination: string;
        readonly from: readonly string[];
        readonly before: FateData;
        readonly after: FateData;
      }[];
    };
  }[];
}
