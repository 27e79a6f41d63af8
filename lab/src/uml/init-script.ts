import { modules } from "./modules.ts";

export interface InitSettings {
  /** Absolute folder for everything that belongs to this boot. */
  readonly folder: string;
  readonly cwd: string;
  readonly command: readonly string[];
  readonly env: Readonly<Record<string, string>>;
}

/** Debian's folder of the modules for its User-Mode Linux. */
export const MODULES_FOLDER = "/usr/lib/uml/modules";

/** What the command leaves in the boot's folder. */
export const OUTPUT_FILE = "output";
export const ERRORS_FILE = "errors";
export const STATUS_FILE = "status";

/**
 * The first process of the guest: gets the kernel ready, runs the command with its output in files, leaves its exit
 * status in another and switches off. `modprobe -a` loads everything in one process; what is missing it says itself.
 * What the kernel asks for later comes from the same folder: this machine's `/lib/modules` has none of it, or is not
 * there.
 */
export function initScript({ folder, cwd, command, env }: InitSettings): string {
  const at = (name: string) => quoted(`${folder}/${name}`);
  const exports = Object.entries({ ...env, HOME: folder, PATH: `${folder}/bin:${GUEST_PATH}` });
  return `#!/bin/bash
${exports.map(([name, value]) => `export ${name}=${quoted(value)}`).join("\n")}
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t tmpfs run /run
mkdir -p /run/netns
printf '%s\\n' ${quoted(`#!/bin/sh\nexec /sbin/modprobe -d ${at("root")} "$@"`)} > ${at("modprobe")}
chmod +x ${at("modprobe")}
echo ${at("modprobe")} > /proc/sys/kernel/modprobe
modprobe -d ${at("root")} -a ${modules.join(" ")}
ip link set lo up
cd ${quoted(cwd)} && ${command.map(quoted).join(" ")} > ${at(OUTPUT_FILE)} 2> ${at(ERRORS_FILE)}
echo $? > ${at(STATUS_FILE)}
sync
echo o > /proc/sysrq-trigger
sleep 10
`;
}

const GUEST_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

function quoted(word: string): string {
  return `'${word.replaceAll("'", `'\\''`)}'`;
}
