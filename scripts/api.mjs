// `pnpm lint:api` in a package that is built: what it exports, as its built types say, against the file api.txt that is kept with it.
// A change of it is one of the package's interface: `pnpm api` writes it anew, and a reviewer sees what changes for users.
import { readFileSync, writeFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";

const FILE = "api.txt";
const USAGE = "Usage: node scripts/api.mjs [--write] PACKAGE_FOLDER";

/** The names that a bundler gives to what entries share; the letters after the last hyphen are a hash of the contents. */
const CHUNK = /(["'])(\.\.?\/(?:[\w.-]+\/)*[\w.]+)-[\w-]{8}\.js\1/g;

/** Types of a package, without comments: entry by entry, and below an entry what it shares with others. */
function apiOf(dir) {
  const { name, publishConfig } = JSON.parse(readFileSync(join(dir, "package.json"), "utf8"));
  const entries = Object.entries(publishConfig.exports).filter(([, target]) => typeof target === "object");
  const parts = entries.map(([path, { types }]) => {
    const entry = join(dir, types);
    const shared = sharedBy(entry, new Set());
    return [`// ${join(name, path)}`, ...[entry, ...shared].map((file) => typesIn(dir, file))].join("\n");
  });
  return `${parts.join("\n\n")}\n`;
}

/** Files below dist that a file of types imports, and those that they import. */
function sharedBy(file, seen) {
  for (const [, path] of readFileSync(file, "utf8").matchAll(/from ["'](\.\.?\/[^"']+)\.js["']/g)) {
    const other = join(dirname(file), `${path}.d.ts`);
    if (seen.has(other)) continue;
    seen.add(other);
    sharedBy(other, seen);
  }
  return [...seen].sort();
}

function typesIn(dir, file) {
  const text = readFileSync(file, "utf8")
    .replaceAll(/\/\*[\s\S]*?\*\//g, "")
    .replaceAll(/^\/\/.*$/gm, "")
    .replaceAll(CHUNK, '"$2.js"')
    .replaceAll(/[ \t]+$/gm, "")
    .replaceAll(/\n{2,}/g, "\n")
    .trim();
  return `// ${relative(dir, file).replace(/-[\w-]{8}\.d\.ts$/, ".d.ts")}\n${text}`;
}

/** The first lines that differ, for people. */
function difference(before, after) {
  const [old, now] = [new Set(before.split("\n")), new Set(after.split("\n"))];
  const lines = [
    ...[...old].filter((line) => !now.has(line)).map((line) => `- ${line}`),
    ...[...now].filter((line) => !old.has(line)).map((line) => `+ ${line}`),
  ];
  return lines.slice(0, 40).join("\n") || "  (only how often a line stands)";
}

/** The bundler's order follows the modules that a package is made of, which users of the package do not see. */
function sorted(text) {
  return text.split("\n").sort().join("\n");
}

const args = process.argv.slice(2);
const [dir, ...more] = args.filter((arg) => arg !== "--write");
if (dir === undefined || more.length > 0) {
  console.error(USAGE);
  process.exitCode = 2;
} else {
  const file = join(dir, FILE);
  const now = apiOf(dir);
  if (args.includes("--write")) writeFileSync(file, now);
  else {
    let before = "";
    try {
      before = readFileSync(file, "utf8");
    } catch {
      // A new package does not have the file yet.
    }
    if (sorted(before) !== sorted(now)) {
      console.error(
        `${file}: not what the package exports now\n${difference(before, now)}\nIf that is meant: pnpm api`,
      );
      process.exitCode = 1;
    }
  }
}
