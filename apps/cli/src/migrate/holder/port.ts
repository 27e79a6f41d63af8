/** Who holds a cluster, as last written. */
export interface HeldBy {
  readonly holder: string;
  /** Another one after each write. */
  readonly version: string;
  /** Whether its process is there, in addition to what is written. Absent: unknown, it is on another host. */
  readonly process?: "runs" | "gone";
}

/** Where the cluster remembers who is changing it. Each call may fail. */
export interface HolderPort {
  /** Undefined: there is no holder. */
  read(): Promise<HeldBy | undefined>;
  /**
   * Takes it in the place of what was read, or renews it.
   *
   * @returns undefined: another writer has changed it since
   */
  write(holder: string, before: HeldBy | undefined): Promise<HeldBy | undefined>;
  /** Gives it up, where it is still the same. */
  release(held: HeldBy): Promise<void>;
}
