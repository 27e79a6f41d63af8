import { fieldsOf, stringOf } from "@fairlead/base";
import { ownMark, stateHere } from "../../node/process-mark.ts";

/** This process, for others on the same machine; nothing where there is no /proc. */
export function ownProcess(): string {
  try {
    return JSON.stringify(ownMark());
  } catch {
    return "";
  }
}

/** @returns undefined: what is written is of another machine, or says nothing */
export function processState(written: string): "runs" | "gone" | undefined {
  try {
    const { pid, start, namespace, boot } = fieldsOf(JSON.parse(written));
    return stateHere({
      pid: Number(pid),
      start: Number(start),
      namespace: Number(namespace),
      boot: stringOf(boot) ?? "",
    });
  } catch {
    return undefined;
  }
}
