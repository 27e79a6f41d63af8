import { type Candidates, candidatesFor } from "./candidates.ts";
import type { CommandCompletion } from "./facts.ts";

/** What kubectl (1.26 and newer) starts to complete `kubectl fairlead`, found on PATH. */
export const COMPLETER = "kubectl_complete-fairlead";

/** Cobra's ShellCompDirective: offer files where there are no words, or never. */
const DIRECTIVES = { files: 0, words: 4 } as const;

/**
 * What `kubectl_complete-fairlead` answers kubectl's own completion: words with their help, and a directive behind
 * them.
 *
 * @param typed what stands behind `kubectl fairlead`
 */
export function kubectlCompletion(commands: readonly CommandCompletion[], typed: readonly string[]): string {
  const { words, files }: Candidates = candidatesFor(commands, typed);
  const lines = words.map(({ word, help }) => (help === "" ? word : `${word}\t${help}`));
  return `${[...lines, `:${files ? DIRECTIVES.files : DIRECTIVES.words}`].join("\n")}\n`;
}
