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
  /** The command that says the same. */
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
