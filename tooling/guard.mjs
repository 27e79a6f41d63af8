// What a command has started ends with it, in whatever way the command ends, and so does its folder for temporary files.
// Plain JavaScript without dependencies: scripts run it with the machine's Node.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";

/** Of the folders that `startGuard` makes, and of no other. */
const OWN_FOLDER = /^fairlead(?:-tests)?-\d+-\d+$/;

/** How long processes of a command that has ended well may take to end themselves, in twentieths of a second. */
const PATIENCE = 100;

/**
 * Waits for a line, or for the end of its standard input, which also comes with a `kill -9` of the process that holds
 * the other end. Then kills each process that has the folder in its environment, until there is none: between a look and
 * its kill a process may have started another. Systems without /proc keep their processes. A build that is killed leaves
 * its settings, compiled, next to their source: they go unless another build runs.
 */
const SCRIPT = `
read -r ended
for round in $(seq 1000); do
  files=$(grep -lszF "TMPDIR=$1" /proc/[0-9]*/environ)
  [ -n "$files" ] || break
  if [ "$ended" = ended ] && [ "$round" -le ${PATIENCE} ]; then sleep 0.05; continue; fi
  for file in $files; do
    id=\${file#/proc/}
    id=\${id%/environ}
    [ "$ended" = "" ] || echo "left behind, killed: $id $(tr '\\0' ' ' <"/proc/$id/cmdline")"
    kill -9 "$id"
  done 2>/dev/null
  [ "$round" -eq 1 ] || sleep 0.05
done
rm -rf -- "$1"
[ -n "$(grep -lsa 'tsup/dist/cl[i]' /proc/[0-9]*/cmdline)" ] || rm -f "$2"/apps/*/tsup.config.bundled_* "$2"/packages/*/tsup.config.bundled_*
`;

const ROOT = fileURLToPath(new URL("..", import.meta.url));

/**
 * Makes a folder for the temporary files of this process and of all that it starts, and a process that outlives this one
 * for a moment: it kills what has this folder as TMPDIR in its environment, and removes the folder.
 *
 * @param {"fairlead" | "fairlead-tests"} name the folder's name begins with it; a short one, since the path of a socket
 *   has 107 bytes
 * @returns {{folder: string, end: (well: boolean) => Promise<void>}} `end` does it now; `well`: no process should be
 *   left, each gets five seconds and is reported on standard error
 */
export function startGuard(name) {
  const folder = join(tmpdir(), `${name}-${process.pid}-${startTime()}`);
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  // In a session of its own: signals to a terminal's or a shell's processes are not for it.
  const child = spawn("sh", ["-c", SCRIPT, "fairlead-guard", folder, ROOT], {
    cwd: "/",
    detached: true,
    stdio: ["pipe", 2, 2],
  });
  child.once("error", () => {});
  child.stdin.once("error", () => {});
  const closed = Promise.race([once(child, "close"), once(child, "error")]).catch(() => {});
  child.unref();
  child.stdin.unref();
  return {
    folder,
    end: async (well) => {
      child.ref();
      child.stdin.end(well ? "ended\n" : "");
      await closed;
    },
  };
}

/** Whether this process is one that a guard ends: its folder for temporary files is a guard's. */
export function isGuarded() {
  return OWN_FOLDER.test(basename(tmpdir()));
}

/** In clock ticks since boot; 0 on systems that have no /proc. */
function startTime() {
  try {
    const stat = readFileSync("/proc/self/stat", "utf8");
    // The name in parentheses may hold anything; the fields after it do not.
    return stat.slice(stat.lastIndexOf(")") + 2).split(" ")[19] ?? "0";
  } catch {
    return "0";
  }
}
