/** The command line is not one: exit code 2. The message names the option or argument and what would be right. */
export class UsageError extends Error {
  override readonly name = "UsageError";
}

/** What was asked for could not be done: exit code 3. The message is for the operator. */
export class CommandFailure extends Error {
  override readonly name = "CommandFailure";
}

/** Every exit code, as help and the reference page tell them. */
export const EXIT_CODES: readonly (readonly [code: number, meaning: string])[] = [
  [0, "done; nothing differs, nothing is wrong"],
  [1, "done; something differs or is wrong, as the command says of itself"],
  [2, "the command line is not one"],
  [3, "it could not be done: a file, the cluster or the kernel cannot be read, a value is wrong"],
];
