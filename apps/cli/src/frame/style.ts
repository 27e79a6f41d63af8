import { styleText } from "node:util";

/** How single words are set off, where that is wanted at all. */
export interface Style {
  readonly bold: (text: string) => string;
  readonly dim: (text: string) => string;
  readonly good: (text: string) => string;
  readonly bad: (text: string) => string;
  readonly warn: (text: string) => string;
}

const asIs = (text: string): string => text;
export const plain: Style = { bold: asIs, dim: asIs, good: asIs, bad: asIs, warn: asIs };

const colored: Style = {
  bold: paint("bold"),
  dim: paint("dim"),
  good: paint("green"),
  bad: paint("red"),
  warn: paint("yellow"),
};

/** Colors for terminals only, and not with NO_COLOR (https://no-color.org) or a terminal that has none. */
export function styleFor(isTerminal: boolean, env: Readonly<Record<string, string | undefined>>): Style {
  const { NO_COLOR: refused = "", TERM: terminal } = env;
  return isTerminal && refused === "" && terminal !== "dumb" ? colored : plain;
}

function paint(format: Parameters<typeof styleText>[0]) {
  return (text: string) => styleText(format, text, { validateStream: false });
}
