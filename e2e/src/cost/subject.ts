/** Rules that packets meet, and how they get into the guest's node. */
export interface Subject {
  /** As tables show it. */
  readonly name: string;
  /** By name; the guest has them in /guest. */
  readonly files: Readonly<Record<string, string | Uint8Array>>;
  /** Lines for sh. */
  readonly load: readonly string[];
}
