import { chmod, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { folderPrefix } from "@fairlead/lab/support/run-inventory";
import { type Figures, notIn, type Scene, type Spec } from "../spec.ts";
import { type Attacked, underAttack, untilLogged } from "./under-attack.ts";

/**
 * Stands before the tool of its own name: the order in a file alongside it counts for one call (stop) or for all (lie).
 */
const TOOL = `#!/bin/sh
here=$(dirname "$0")
order=
[ -e "$here/order" ] && read -r order <"$here/order"
case $order in
stop) rm "$here/order"; echo $$ >"$here/stopped"; kill -STOP $$ ;;
lie) cat >/dev/null; exit 0 ;;
esac
PATH=\${PATH#*:} exec "$(basename "$0")" "$@"
`;

const programs = ["iptables", "ip6tables"].flatMap((tool) =>
  ["restore", "nft-restore", "legacy-restore"].map((rest) => `${tool}-${rest}`),
);
/** How long a tool may be waited for, and its failure be told. */
const NOTICED_MS = 45_000;

async function toolFolder({ later }: Scene): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), `${folderPrefix}-`));
  later(async () => {
    await endStopped(join(folder, "stopped"));
    await rm(folder, { recursive: true, force: true });
  });
  for (const program of programs) {
    await writeFile(join(folder, program), TOOL);
    await chmod(join(folder, program), 0o755);
  }
  return folder;
}

/**
 * Whom the agent has not ended is not left behind. @param file has the number of the process that was stopped, if any
 */
async function endStopped(file: string): Promise<void> {
  const pid = Number(await readFile(file, "utf8").catch(() => "0"));
  const state = await readFile(`/proc/${pid}/stat`, "utf8").catch(() => "");
  // Stopped (proc(5)): no other program has its number.
  if (pid > 0 && / T /.test(state)) process.kill(pid, "SIGKILL");
}

function misbehaving(
  order: "stop" | "lie",
  name: string,
  act: (attacked: Attacked, file: string) => Promise<Figures>,
): Spec {
  const folders = new WeakMap<Scene, string>();
  return underAttack({
    name: `attack: ${name}`,
    unfit: notIn(["nftables"], "nftables mode starts none of these tools"),
    mayBeUnwell: true,
    start: async ({ scene }) => {
      const folder = await toolFolder(scene);
      folders.set(scene, folder);
      return { env: { PATH: `${folder}:${process.env["PATH"]}` } };
    },
    act: async (attacked) => {
      const file = join(folders.get(attacked.scene) ?? "", "order");
      await writeFile(file, `${order}\n`);
      return act(attacked, file);
    },
  });
}

const stopped = misbehaving("stop", "iptables-restore is stopped for good (SIGSTOP)", async (attacked) => ({
  meanwhile: await attacked.change("meanwhile", NOTICED_MS),
}));

const lying = misbehaving("lie", "iptables-restore does nothing and says that it did", async (attacked, file) => {
  const before = await attacked.node.agent.log();
  const served = attacked.change("meanwhile", 2 * NOTICED_MS);
  // Waited for below, unless nothing is told.
  served.catch(() => {});
  const reported = await untilLogged(attacked.node, before, /^E/, NOTICED_MS);
  await rm(file);
  return { reported, meanwhile: await served };
});

export const badTools: readonly Spec[] = [stopped, lying];
