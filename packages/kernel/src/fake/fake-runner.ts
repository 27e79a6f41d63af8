import { type Argv, CommandError, type Input, type Runner, type RunOptions, type RunResult } from "../runner.ts";
import { Faults, singleStep } from "./faults.ts";

/** What a program would do: its standard output, or how it ends. */
export type ProgramAnswer = string | { readonly stdout?: string; readonly stderr?: string; readonly exitCode?: number };

/**
 * A program as a function of its arguments, without its own name, and its input.
 *
 * @param input all of standard input
 */
export type Program = (args: readonly string[], input: string) => ProgramAnswer;

/** A runner whose programs are functions. A program that it does not have is not installed. */
export class FakeRunner implements Runner {
  /** What goes wrong, and which calls there were. */
  readonly faults: Faults;
  readonly #programs = new Map<string, Program>();

  constructor(programs: Readonly<Record<string, Program | ProgramAnswer>> = {}, faults = new Faults()) {
    this.faults = faults;
    for (const [name, program] of Object.entries(programs)) this.install(name, program);
  }

  /** Installs a program, in place of an earlier one of the name. */
  install(name: string, program: Program | ProgramAnswer): void {
    this.#programs.set(name, typeof program === "function" ? program : () => program);
  }

  async run(argv: Argv, options: RunOptions = {}): Promise<RunResult> {
    const input = await gather(options.input ?? "");
    return singleStep(this.faults, argv, () => this.#answer(argv, input));
  }

  async *stream(argv: Argv): AsyncGenerator<string, void, void> {
    const { stdout } = await singleStep(this.faults, argv, () => this.#answer(argv, ""));
    // Pieces that do not end where lines do.
    for (let from = 0; from < stdout.length; from += 1000) yield stdout.slice(from, from + 1000);
  }

  #answer(argv: Argv, input: string): RunResult {
    const [name, ...args] = argv;
    const program = this.#programs.get(name);
    if (program === undefined) throw new CommandError({ argv, reason: "not-found" });
    const answer = program(args, input);
    const { stdout = "", stderr = "", exitCode = 0 } = typeof answer === "string" ? { stdout: answer } : answer;
    if (exitCode !== 0) throw new CommandError({ argv, reason: "exit", exitCode, stderr });
    return { stdout, stderr };
  }
}

async function gather(input: Input): Promise<string> {
  if (typeof input === "string") return input;
  let text = "";
  for await (const piece of input) text += piece;
  return text;
}
