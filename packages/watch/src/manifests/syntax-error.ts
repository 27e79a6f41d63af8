/** A manifest file that can't be read; line and column, from 1, where the parser knows. */
export class ManifestSyntaxError extends Error {
  override readonly name = "ManifestSyntaxError";
  readonly line: number | undefined;
  readonly column: number | undefined;

  constructor(message: string, line?: number, column?: number) {
    super(message);
    this.line = line;
    this.column = column;
  }
}

/** It is larger or deeper than anything that is read, whatever language it is in. */
export class TooMuchManifestError extends ManifestSyntaxError {}
