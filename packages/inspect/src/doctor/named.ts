/** What a line names of many; the others are counted. */
const MOST_NAMED = 5;
const LONGEST_NAME = 60;

/** Names as one line has room for them: the first few, cut where they are long, and how many more there are. */
export function named(names: readonly string[], most = MOST_NAMED, separator = ", "): string {
  const shown = names.slice(0, most).map((name) => shortened(name));
  const more = names.length - shown.length;
  return shown.join(separator) + (more > 0 ? `${separator}and ${more} more` : "");
}

function shortened(name: string): string {
  return name.length > LONGEST_NAME ? `${name.slice(0, LONGEST_NAME - 1)}…` : name;
}
