import { CommandError, type Runner } from "@fairlead/kernel";

/** What came of looking at something. */
export type CommandResult =
  | { readonly kind: "seen"; readonly text: string }
  | { readonly kind: "absent" }
  /** It may be there or not: the right to look is missing, or the program did not end. */
  | { readonly kind: "unseen" };

/** Runs a program that looks at something; never fails. */
export type Attempt = (program: string, ...args: readonly string[]) => Promise<CommandResult>;

const DENIED = /permission denied|not permitted|must be root/i;

export function attemptWith(runner: Runner): Attempt {
  return async (program, ...args) => {
    try {
      return { kind: "seen", text: (await runner.run([program, ...args])).stdout };
    } catch (error) {
      return { kind: isAnswer(error) ? "absent" : "unseen" };
    }
  };
}

export function outputOf(seen: CommandResult): string | undefined {
  return seen.kind === "seen" ? seen.text : undefined;
}

/** A program that is not there, or that ended with another complaint than about rights, found nothing. */
function isAnswer(error: unknown): boolean {
  if (!(error instanceof CommandError)) return false;
  return error.reason === "not-found" || (error.reason === "exit" && !DENIED.test(error.stderr));
}

/** Undefined: unknown. */
export function isThere({ kind }: CommandResult): boolean | undefined {
  return kind === "unseen" ? undefined : kind === "seen";
}
