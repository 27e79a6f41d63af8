import type { ServiceKey } from "@fairlead/core";
import type { NodeRow, ServiceRow } from "./rows.ts";

/** What holds for as long as the console runs. */
export interface ConsoleFacts {
  readonly version: string;
  /** `manifests ./services/`, `cluster https://…` */
  readonly source: string;
  /** The node that the console looks from. */
  readonly node: string;
  readonly mode: string;
  /** Whether kernels and agents can be looked at. */
  readonly kernels: boolean;
}

/** Whether the source of the objects answers. */
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

/** Events of the stream, by name. */
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
