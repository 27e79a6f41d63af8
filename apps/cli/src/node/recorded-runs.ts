import { type Argv, CommandError, type FailureReason, type Runner } from "@fairlead/kernel";
import { collect } from "./collect.ts";

/** A program that ran on a node, and what came of it; JSON values only. */
export type RecordedRun =
  | { readonly argv: Argv; readonly stdout: string }
  | {
      readonly argv: Argv;
      readonly failure: {
        readonly reason: FailureReason;
        readonly exitCode?: number | undefined;
        readonly stderr?: string | undefined;
      };
    };

/** Runs programs, and reports each with what it printed. */
export function recordingRunner(runner: Runner, notify: (run: RecordedRun) => void): Runner {
  const recorded = async <T>(argv: Argv, work: () => Promise<T>, printed: (result: T) => string): Promise<T> => {
    try {
      const result = await work();
      notify({ argv, stdout: printed(result) });
      return result;
    } catch (error) {
      if (error instanceof CommandError) {
        const { reason, exitCode, stderr } = error;
        notify({ argv, failure: { reason, exitCode, stderr } });
      }
      throw error;
    }
  };
  return {
    run: (argv, options) =>
      recorded(
        argv,
        () => runner.run(argv, options),
        ({ stdout }) => stdout,
      ),
    async *stream(argv, options) {
      yield await recorded(
        argv,
        async () => (await collect(runner.stream(argv, options))).join(""),
        (text) => text,
      );
    },
  };
}

/** Answers with what was recorded; what was not is run by another. */
export function replayingRunner(runs: readonly RecordedRun[], otherwise: Runner): Runner {
  const known = new Map(runs.map((run) => [JSON.stringify(run.argv), run]));
  const answer = (argv: Argv): string | undefined => {
    const run = known.get(JSON.stringify(argv));
    if (run !== undefined && "failure" in run) throw new CommandError({ argv, ...run.failure });
    return run?.stdout;
  };
  return {
    run: async (argv, options) => {
      const stdout = options?.input === undefined ? answer(argv) : undefined;
      return stdout === undefined ? otherwise.run(argv, options) : { stdout, stderr: "" };
    },
    async *stream(argv, options) {
      const stdout = answer(argv);
      if (stdout === undefined) yield* otherwise.stream(argv, options);
      else yield stdout;
    },
  };
}
