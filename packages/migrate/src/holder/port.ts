/** Who holds a cluster, as last written. */
export interface HeldBy {
  readonly holder: string;
  /** Another one after each write. */
  readonly version: string;
  /** What is known of it beside what is written: whether its process is there. Absent: nothing, it is elsewhere. */
  readonly process?: "runs" | "gone";
}

/** Where the cluster remembers who is changing it. Each call may fail. */
export interface HolderPort {
  /** Undefined: nobody is. */
  read(): Promise<HeldBy | undefined>;
  /**
   * Takes it in the place of what was read, or renews it.
   *
   * @returns undefined: somebody else has written it since
   */
  write(holder: string, before: HeldBy | undefined): Promise<HeldBy | undefined>;
  /** Gives it up, where it is still the same. */
  release(held: HeldBy): Promise<void>;
}
