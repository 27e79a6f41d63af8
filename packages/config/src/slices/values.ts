import type { GivenFlags } from "../command-line.ts";
import type { ConfigError } from "../parse-types.ts";
import { showValue } from "../report.ts";
import { SLICES } from "./flags.ts";

/** Values as given, checked by the flags' types, or their defaults. */
export class Values {
  readonly #given = new Map<string, string>();
  readonly errors: ConfigError[] = [];

  constructor(flags: GivenFlags) {
    for (const flag of SLICES.groups.flatMap((group) => group.flags)) {
      const texts = flags.get(flag.name);
      if (texts === undefined) continue;
      const read = flag.type.read(texts);
      if ("problem" in read) this.#fail(flag.name, texts.at(-1), read.problem);
      else if (read.value !== "") this.#given.set(flag.name, String(read.value));
    }
  }

  /** Undefined: it is not given, or empty, or wrong. */
  given(name: string): string | undefined {
    return this.#given.get(name);
  }

  /** As given, or the default that --help shows. */
  text(name: string): string {
    return this.#given.get(name) ?? DEFAULTS.get(name) ?? "";
  }

  checked(name: string, isRight: (text: string) => boolean, form: string): string {
    const text = this.text(name);
    this.require(name, isRight(text), form);
    return text;
  }

  require(name: string, isRight: boolean, form: string): void {
    if (!isRight) this.#fail(name, this.text(name), form);
  }

  #fail(name: string, value: unknown, message: string): void {
    this.errors.push({ field: `--${name}`, value: showValue(value), message });
  }
}

const DEFAULTS = new Map(SLICES.groups.flatMap(({ flags }) => flags).map((flag) => [flag.name, flag.default]));
