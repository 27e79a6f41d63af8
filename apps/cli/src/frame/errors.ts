/** The command line is invalid: exit code 2. The message names the option or argument and what would be right. */
export class UsageError extends Error {
  override readonly name = "UsageError";
}

/** What was asked for could not be done: exit code 3. The message is for the operator. */
export class CommandFailure extends Error {
  override readonly name = "CommandFailure";
}

/** Every exit code, as in the help and on the reference page. */
export const EXIT_CODES: readonly (readonly [code: number, meaning: string])[] = [
  [0, "done; nothing differs, nothing is wrong"],
  [1, "done; something differs or is wrong: the help of each command says what"],
  [2, "the command line is invalid"],
  [3, "failed: a file, the cluster or the kernel cannot be read, or a value is invalid"],
];
