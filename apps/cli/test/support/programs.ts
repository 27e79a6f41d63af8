import { type Argv, CommandError, type Runner } from "@fairlead/kernel";

/** A host whose programs print this, by the whole command; others are not installed. Notes what is started. */
export function programs(printed: Readonly<Record<string, string>>): Runner & { readonly started: string[] } {
  const started: string[] = [];
  const run = async (argv: Argv) => {
    started.push(argv.join(" "));
    const stdout = printed[argv.join(" ")];
    if (stdout === undefined) throw new CommandError({ argv, reason: "not-found" });
    return { stdout, stderr: "" };
  };
  return {
    started,
    run,
    async *stream(argv) {
      yield (await run(argv)).stdout;
    },
  };
}
