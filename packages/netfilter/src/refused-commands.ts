/** One command that the kernel refused, and why. */
export interface RefusedCommand<Command = unknown> {
  /** As it was given to the client. */
  readonly command: Command;
  /** The command and the kernel's answer, in words: `add KUBE-CLUSTER-IP 10.96.0.1,tcp:80: the set is full`. */
  readonly text: string;
}

/** So many refused commands are named in the message. */
const NAMED = 5;

/**
 * What a change without a transaction throws where the kernel refused some of its commands and carried out all others:
 * one entry that cannot be written is no reason to write none.
 */
export class RefusedCommands<Command = unknown> extends Error {
  override readonly name = "RefusedCommands";
  /** In the order of the commands. */
  readonly refused: readonly RefusedCommand<Command>[];

  /** @param refused at least one */
  constructor(refused: readonly RefusedCommand<Command>[]) {
    const named = refused.slice(0, NAMED).map(({ text }) => text);
    super(
      refused.length === 1 ? named.join() : `${refused.length} commands were refused, the first: ${named.join("; ")}`,
    );
    this.refused = refused;
  }
}
