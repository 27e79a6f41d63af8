/** A typed rule, command or name that can't be written as text without changing its meaning. */
export class RuleTextError extends Error {
  override readonly name = "RuleTextError";
  /** What was wrong: `comment`, `chain`, `interface`, … */
  readonly field: string;
  /** The value that cannot be written. */
  readonly value: string;

  constructor(field: string, value: string, expected: string) {
    super(`${field} ${JSON.stringify(value)}: ${expected}`);
    this.field = field;
    this.value = value;
  }
}

/** Text that iptables-save can't have written or that iptables-restore would refuse. */
export class RuleParseError extends Error {
  override readonly name = "RuleParseError";
  /** Counts from 1. */
  readonly line: number;
  /** The line as it stands in the text. */
  readonly text: string;

  constructor(line: number, text: string, problem: string) {
    super(`line ${line}: ${problem}: ${text}`);
    this.line = line;
    this.text = text;
  }
}
