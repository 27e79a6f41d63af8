/** What an accounting object has counted. */
export interface NfacctCount {
  /** Packets since the object was made or reset. */
  readonly packets: number;
  /** Bytes of these. */
  readonly bytes: number;
}

/** Whether it was done, or why not. */
export type NfacctResult = { readonly ok: true } | { readonly ok: false; readonly reason: string };

/** Netfilter's named counters (nfnetlink_acct). A rule with `-m nfacct` needs its counter before it. */
export interface Nfacct {
  /** Makes the counter unless it is there. Says why where this kernel or machine has none. */
  ensure(name: string): Promise<NfacctResult>;
  /** Undefined: there is no such counter, or none at all. */
  read(name: string): Promise<NfacctCount | undefined>;
}
