/** How a command ended. */
export interface Ended {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

/** What a reader gets of a command, as it is recorded. */
export interface RightsOutcome {
  readonly command: string;
  readonly reader: string;
  readonly code: number;
  /** Rights that the command says it lacks, `list nodes`; sorted. */
  readonly lacks: readonly string[];
  /** What it said first: of what is missing, else an answer. */
  readonly says: string;
}

const MAY_NOT = /user (\S+) may not (\S+) (\S+) (?:in the whole cluster|in namespace (\S+))/g;
/** Where a user's rights end: the rule that is named. */
const RULE =
  /may not \S+ \S+ (?:in the whole cluster; a ClusterRole|in namespace \S+; a Role) with this rule allows it: \{apiGroups: \[/;

/** Rights that what a command printed names; where it failed the one that it failed of. */
export function lackedIn(user: string, { code, out, err }: Ended): readonly string[] {
  const found = Array.from(`${out}\n${err}`.matchAll(MAY_NOT), ([, who, verb, resource]) => {
    if (who !== user) throw new Error(`the rights of ${who} are named, not those of ${user}:\n${err}`);
    // Services and their EndpointSlices are asked for at once: either may be refused first.
    return `${verb} ${resource === "endpointslices" ? "services" : resource}`;
  });
  return [...new Set(code > 1 ? found.slice(-1) : found)].sort();
}

/** What no command may do to a reader, whatever its rights are. Undefined: it did none of it. */
export function complaintOf({ code, out, err }: Ended): string | undefined {
  if (/^ {4}at /m.test(err)) return "a stack";
  if (code === 2) return "the command line is refused";
  if (/ does not answer: 403/.test(err)) return "what is refused is said to be no answer";
  const text = `${err}\n${out}`;
  if (/may not/.test(text) && !RULE.test(text)) return "a missing right without the rule that gives it";
  if (code > 1 && !/may not/.test(text)) return "a failure that names no right";
  return undefined;
}

/** The cell of the table in docs/tools.md. */
function cellOf({ code, lacks }: RightsOutcome): string {
  const names = lacks.map((one) => `\`${one}\``).join(", ");
  if (code > 1) return `no: ${names}`;
  return lacks.length === 0 ? "yes" : `less: ${names}`;
}

/** The table of docs/tools.md, a row for each command. */
export function rightsTable(outcomes: readonly RightsOutcome[]): string {
  const readers = [...new Set(outcomes.map(({ reader }) => reader))];
  const commands = [...new Set(outcomes.map(({ command }) => command))];
  const cells = commands.map((command) => {
    const own = readers.map((reader) => outcomes.find((one) => one.command === command && one.reader === reader));
    return [`\`${command}\``, ...own.map((one) => (one === undefined ? "-" : cellOf(one)))];
  });
  const row = (texts: readonly string[]) => `| ${texts.join(" | ")} |`;
  return [row(["command", ...readers]), row(["---", ...readers.map(() => "---")]), ...cells.map(row)].join("\n");
}
