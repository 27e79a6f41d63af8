/** As Node tells it: `ENOENT: no such file or directory, open '/etc/x'`; the path stands before it already. */
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
