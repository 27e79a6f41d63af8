// The budget of the house: lines of TypeScript and files by room, words of Markdown. Pure; check-tree.mjs reads and writes.

const TYPESCRIPT = /\.tsx?$/;
const TEST = /(?:^|\/)test\/|\.(?:test|tools)\.tsx?$/;
/** Others' text, and what is written by a tool. */
const NOT_OURS = /(?:^|\/)(?:fixtures\/|CHANGELOG\.md$)|^\.changeset\//;
const UNITS = { source: "lines of source", test: "lines of tests", files: "TypeScript files" };

/**
 * @param {readonly string[]} files paths of all tracked files
 * @param {(file: string) => string} read
 * @returns {{ rooms: Record<string, Record<keyof typeof UNITS, number>>, words: number }}
 */
export function measure(files, read) {
  const folders = files
    .filter((file) => /\/package\.json$/.test(file))
    .map((file) => file.replace(/package\.json$/, ""));
  const rooms = {};
  let words = 0;
  for (const file of files.filter((path) => !NOT_OURS.test(path))) {
    if (file.endsWith(".md")) words += read(file).split(/\s+/).filter(Boolean).length;
    if (!TYPESCRIPT.test(file)) continue;
    const folder =
      folders.find((path) => file.startsWith(path)) ?? (file.includes("/") ? file.replace(/\/.*/, "/") : "./");
    const name = folder.slice(0, -1);
    rooms[name] ??= { source: 0, test: 0, files: 0 };
    const room = rooms[name];
    room[TEST.test(file.slice(folder.length)) ? "test" : "source"] += read(file).split("\n").length - 1;
    room.files += 1;
  }
  return { rooms, words };
}

/**
 * @param {{ slack: { percent: number, lines: number, files: number }, words: number, all: object, rooms: object }} budget
 * @param {ReturnType<typeof measure>} found
 * @returns {string[]} what is over by more than the slack, which is a percentage and at least so many lines or files
 */
export function overBudget(budget, found) {
  const { percent, lines, files } = budget.slack;
  const allowed = (number, unit) =>
    number + Math.max(Math.floor((number * percent) / 100), number === 0 ? 0 : unit === "files" ? files : lines);
  const over = (name, limits, now) =>
    Object.entries(UNITS)
      .filter(([unit]) => now[unit] > allowed(limits[unit] ?? 0, unit))
      .map(
        ([unit, what]) =>
          `budget.json: ${name} has ${now[unit]} ${what}, its budget is ${limits[unit] ?? 0}; ` +
          `shrink it, or raise "${unit}" there with a sentence "why"`,
      );
  return [
    ...Object.entries(found.rooms).flatMap(([name, now]) => over(name, budget.rooms[name] ?? {}, now)),
    ...over("the repository", budget.all, sum(found.rooms)),
    ...(found.words > allowed(budget.words, "words")
      ? [
          `budget.json: ${found.words} words of Markdown, the budget is ${budget.words}; shorten a page, or raise "words" with a sentence "why"`,
        ]
      : []),
  ];
}

/** The budget with every number lowered to what is there: none is ever raised, and rooms that went leave it. */
export function lowered(budget, found) {
  const lower = (limits, now) => ({
    ...limits,
    ...Object.fromEntries(Object.keys(UNITS).map((unit) => [unit, Math.min(limits?.[unit] ?? now[unit], now[unit])])),
  });
  const rooms = Object.keys(found.rooms)
    .sort()
    .map((name) => [name, lower(budget.rooms[name], found.rooms[name])]);
  return {
    ...budget,
    words: Math.min(budget.words, found.words),
    all: lower(budget.all, sum(found.rooms)),
    rooms: Object.fromEntries(rooms),
  };
}

function sum(rooms) {
  const all = { source: 0, test: 0, files: 0 };
  for (const room of Object.values(rooms)) for (const unit of Object.keys(UNITS)) all[unit] += room[unit];
  return all;
}
