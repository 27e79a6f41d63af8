/** A program and its arguments. Nothing is ever passed through a shell. */
export type Argv = readonly [program: string, ...args: string[]];

/** Text that is written in pieces as the process takes it. */
export type Input = string | Iterable<string> | AsyncIterable<string>;

/** What a process gets, and how long it may take. */
export interface RunOptions {
  /** Standard input; without it the process reads an empty one. */
  readonly input?: Input;
  /** Milliseconds until the process is killed. Default: the runner's. */
  readonly timeoutMs?: number;
  /** Kills the process when aborted. */
  readonly signal?: AbortSignal;
  /** Characters of standard output to accept; more kills the process. Default 16 Mi. `stream` has no limit. */
  readonly maxStdout?: number;
}

/** How long a stream may take. */
export interface StreamOptions {
  /** Milliseconds until the process is killed; 0: never. Default: the runner's. */
  readonly timeoutMs?: number;
  /** Ends the stream with a `CommandError` of reason "aborted". */
  readonly signal?: AbortSignal;
}

/** What a process printed that succeeded. */
export interface RunResult {
  /** All of standard output. */
  readonly stdout: string;
  /** All of standard error. */
  readonly stderr: string;
}

/** How every process of Fairlead is started. Two methods, so that a fake is as small. */
export interface Runner {
  /**
   * Runs a process to its end.
   *
   * @throws CommandError when it cannot be started, exits with another code than 0, is killed, takes too long or says
   * too much
   */
  run(argv: Argv, options?: RunOptions): Promise<RunResult>;
  /**
   * Standard output in pieces of text as they come, with back-pressure (see `lines`). Leaving the loop kills the
   * process.
   *
   * @throws CommandError as `run`, after the last piece
   */
  stream(argv: Argv, options?: StreamOptions): AsyncIterable<string>;
}
