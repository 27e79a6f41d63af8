import { arch, cpus, loadavg, release, totalmem } from "node:os";
import { createRunner } from "@fairlead/kernel";

/** Where figures were taken. */
export interface Machine {
  /** ISO date, without the time. */
  readonly date: string;
  readonly cpu: string;
  readonly cores: number;
  /** 10⁹ bytes. */
  readonly memoryGB: number;
  readonly kernel: string;
  readonly node: string;
  readonly iptables: string;
  /**
   * Processes that wanted a core in the last 5 minutes, on average, the benchmark's own included: 2 to 3 on a quiet
   * machine.
   */
  readonly load: number;
  /** Cores that other processes kept busy during the benchmark, on average; absent: not recorded. */
  readonly others?: number;
}

/** @param others as `watchOtherWork` says at the end */
export async function describeMachine(others: number): Promise<Machine> {
  const { stdout } = await createRunner().run(["iptables", "--version"]);
  const processors = cpus();
  return {
    date: new Date().toISOString().slice(0, 10),
    cpu: processors[0]?.model.trim() || arch(),
    cores: processors.length,
    memoryGB: Math.round(totalmem() / 1e9),
    kernel: release(),
    node: process.version,
    iptables: stdout.replace(/^iptables v(\S+).*/s, "$1"),
    load: loadavg()[1] ?? Number.NaN,
    others,
  };
}
