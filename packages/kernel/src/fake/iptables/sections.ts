/** One `*table … COMMIT` of a payload. */
export interface Section {
  /** Number of its first line in the payload, from 1. */
  readonly firstLine: number;
  /** All its lines; comments and empty ones too, so that numbers stay right. */
  readonly lines: readonly string[];
  /** False: the payload ended before the COMMIT. */
  readonly complete: boolean;
}

/** Cuts a payload into its sections as it comes, each as soon as it is complete. */
export async function* sections(payload: AsyncIterable<string>): AsyncGenerator<Section, void, void> {
  let held: string[] = [];
  let firstLine = 1;
  for await (const line of payload) {
    held.push(line);
    if (line.trimEnd() !== "COMMIT") continue;
    yield { firstLine, lines: held, complete: true };
    firstLine += held.length;
    held = [];
  }
  if (held.some((line) => line !== "" && !line.startsWith("#"))) yield { firstLine, lines: held, complete: false };
}

/** Numbers in the payload of the lines that are commands, in their order. */
export function commandLines({ firstLine, lines }: Section): number[] {
  const numbers: number[] = [];
  for (const [index, line] of lines.entries()) {
    if (line === "" || line.startsWith("#") || line.startsWith("*") || line.trimEnd() === "COMMIT") continue;
    numbers.push(firstLine + index);
  }
  return numbers;
}
