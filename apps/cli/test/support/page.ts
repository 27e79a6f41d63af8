/** A command of a page's console block, with what it says that it prints. */
export interface Example {
  readonly line: string;
  /** The arguments, without `fairlead` itself. */
  readonly words: readonly string[];
  /** The file that its output goes into. */
  readonly into?: string;
  readonly output: string;
}

/** The commands of all console blocks of a page, in their order. */
export function examplesOf(page: string): readonly Example[] {
  const blocks = [...page.matchAll(/^```console\n(.*?)^```/gms)].map(([, block = ""]) => block);
  return blocks.flatMap((block) => block.split(/^\$ /m).slice(1).map(exampleOf));
}

function exampleOf(text: string): Example {
  const end = text.indexOf("\n");
  const line = text.slice(0, end);
  const [command = "", into] = line.split(" > ");
  const words = command.split(" ").slice(1);
  return { line, words, ...(into === undefined ? {} : { into }), output: text.slice(end + 1) };
}
