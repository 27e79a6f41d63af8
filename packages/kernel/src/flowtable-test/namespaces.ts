import { closeSync, openSync, writeFileSync } from "node:fs";
import { NetlinkError } from "../netlink/error.ts";
import { loadKoffi } from "../netlink/koffi.ts";

/** CLONE_NEWNET of unshare(2). */
const NETWORK = 0x40000000;
const OWN = "/proc/thread-self/ns/net";

interface Calls {
  readonly unshare: (flags: number) => number;
  readonly setns: (descriptor: number, kind: number) => number;
  readonly errno: () => number;
}

/**
 * Network namespaces of this process only: the main thread is in one of them at a time. What it opens there, sockets
 * included, stays there. They go with the process.
 */
export class OwnNamespaces {
  readonly #calls: Calls;
  readonly #open: number[] = [];

  private constructor(calls: Calls) {
    this.#calls = calls;
  }

  /** @throws NativeCodeError when there is no compiled code for this machine */
  static async open(): Promise<OwnNamespaces> {
    const koffi = await loadKoffi();
    const libc = koffi.load(null);
    const [unshare, setns] = [libc.func("int unshare(int)"), libc.func("int setns(int, int)")];
    return new OwnNamespaces({ unshare, setns, errno: () => koffi.errno() });
  }

  /**
   * Makes a namespace and enters it.
   *
   * @returns its descriptor, by which `enter` returns to it and devices are moved there
   * @throws NetlinkError with the code EPERM for a process without CAP_SYS_ADMIN
   */
  make(): number {
    this.#check("making a network namespace", this.#calls.unshare(NETWORK));
    const descriptor = openSync(OWN, "r");
    this.#open.push(descriptor);
    return descriptor;
  }

  enter(descriptor: number): void {
    this.#check("entering a network namespace", this.#calls.setns(descriptor, NETWORK));
  }

  /** Sets a key of /proc/sys in the namespace that the main thread is in: only its own reads and writes go there. */
  set(key: string, value: string): void {
    writeFileSync(`/proc/sys/${key}`, value);
  }

  #check(what: string, result: number): void {
    if (result !== 0) throw new NetlinkError(what, this.#calls.errno());
  }

  close(): void {
    for (const descriptor of this.#open.splice(0)) closeSync(descriptor);
  }
}
