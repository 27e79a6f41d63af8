import { isThere } from "../support/is-there.ts";
import { type Lack, lackingPrograms, lackText, type NeededProgram } from "../support/lack.ts";
import { MODULES_FOLDER } from "./init-script.ts";

const BY = "User-Mode Linux";

const NEEDED: readonly NeededProgram[] = [
  { by: BY, program: "linux.uml", debian: "user-mode-linux" },
  { by: BY, program: "gcc", debian: "gcc" },
  { by: BY, program: "modprobe", debian: "kmod" },
  { by: BY, program: "iptables-legacy", debian: "iptables" },
  { by: BY, program: "ip", debian: "iproute2" },
  { by: BY, program: "ipset", debian: "ipset" },
  { by: BY, program: "ipvsadm", debian: "ipvsadm" },
  { by: BY, program: "conntrack", debian: "conntrack" },
];

/** What User-Mode Linux lacks here; none: it can run. Starts nothing. */
export async function lacksForUml(): Promise<readonly Lack[]> {
  if (process.arch !== "x64") return [{ what: `${BY} runs only on x86-64, this machine is ${process.arch}` }];
  const programs = await lackingPrograms(NEEDED);
  if (programs.length > 0 || (await isThere(MODULES_FOLDER))) return programs;
  return [{ what: `${BY} needs its modules in ${MODULES_FOLDER}`, debian: "user-mode-linux" }];
}

/** The same as one text; undefined where it can run. */
export async function missingForUml(): Promise<string | undefined> {
  const lacks = await lacksForUml();
  return lacks.length === 0 ? undefined : lackText(lacks);
}
