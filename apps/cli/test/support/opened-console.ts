import type { Argv, Runner } from "@fairlead/kernel";
import { type Run, type RunningCommand, type RunOptions, started } from "./run.ts";

/** What a page that is opened now is given at first. */
export interface Beginning {
  readonly services: readonly Readonly<Record<string, unknown>>[];
  readonly begin: Readonly<Record<string, unknown>>;
}

/** The parts of the address that a console prints: where it is, and the token with which it is opened. */
export async function printedAddress(
  console: RunningCommand,
): Promise<{ readonly base: string; readonly token: string }> {
  const [, base = "", token = ""] = await console.prints(/(http:\S+)#token=(\S+)/);
  return { base, token };
}

/** `fairlead console` in this process, asked as its page asks. */
export async function openedConsole(
  signal: AbortSignal,
  args: readonly string[],
  { env = {} }: Pick<RunOptions, "env"> = {},
) {
  const calls: Argv[] = [];
  const runner: Runner = {
    run: async (argv) => {
      calls.push(argv);
      throw new Error("there is none");
    },
    stream: () => {
      throw new Error("nothing is read here");
    },
  };
  const console = started(signal, ["console", ...args], { env, runner });
  const { base, token } = await printedAddress(console);
  const { origin } = new URL(base);
  const post = (path: string, body: unknown, headers = {}) =>
    fetch(`${base}${path}`, { method: "POST", body: JSON.stringify(body), headers: { origin, ...headers } });
  const cookie = (await post("session", { token })).headers.get("set-cookie")?.split(";", 1)[0] ?? "";
  /** Reads the page's events until they match. */
  const eventsUntil = async (pattern: RegExp): Promise<string> => {
    const { body } = await fetch(`${base}events`, { headers: { cookie } });
    let seen = "";
    for await (const piece of body?.pipeThrough(new TextDecoderStream()) ?? []) {
      seen += piece;
      if (pattern.test(seen)) break;
    }
    return seen;
  };
  return {
    calls,
    eventsUntil,
    get: async (path: string) => JSON.parse(await (await fetch(`${base}${path}`, { headers: { cookie } })).text()),
    post: async (path: string, body: unknown) => JSON.parse(await (await post(path, body, { cookie })).text()),
    beginning: async (): Promise<Beginning> => {
      const blocks = (await eventsUntil(/^event: whole\n.*\n\n/m)).split("\n\n");
      const all = (name: string) =>
        blocks.flatMap((block) => {
          const [, data = ""] = new RegExp(`^event: ${name}\\ndata: (.*)$`, "m").exec(block) ?? [];
          return data === "" ? [] : [JSON.parse(data)];
        });
      return { begin: all("begin")[0], services: all("services").flatMap(({ rows }) => rows) };
    },
    close: (): Promise<Run> => console.close(),
  };
}
