/** The command line is invalid: exit code 2. The message names the option or argument and what would be right. */
export class UsageError extends Error {
  override readonly name = "UsageError";
}

/** What was asked for could not be done: exit code 3. The message is for the operator. */
export class CommandFailure extends Error {
  override readonly name = "CommandFailure";
}

export const EXIT_CODES: readonly (readonly [code: number, meaning: string])[] = [
  [0, "done; nothing differs, nothing is wrong"],
  [1, "done; something differs or is wrong: the help of each command says what"],
  [2, "the command line is invalid"],
  [3, "failed: a file, the cluster or the kernel cannot be read, or a value is invalid"],
];

/** Node's message: `ENOENT: no such file or directory, open '/etc/x'`; the path stands before it already. */
const FILE_ERROR = /\b(E[A-Z]+): ([^,\n]+), [a-z]+(?: '[^'\n]*')?/g;

const WORDS: ReadonlyMap<string, string> = new Map([
  ["ENOENT", "no such file or folder"],
  ["EACCES", "it may not be read (permission denied)"],
  ["EPERM", "it may not be read (not permitted)"],
  ["EISDIR", "is a folder, not a file"],
  ["ENOTDIR", "a part of the path is not a folder"],
]);

/** A message for operators, without the names of errors and system calls. */
export function fileErrorsInWords(message: string): string {
  return message.replaceAll(FILE_ERROR, (_, code: string, text: string) => WORDS.get(code) ?? text);
}
