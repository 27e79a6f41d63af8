import { NetlinkError } from "../netlink/error.ts";
import { loadKoffi } from "../netlink/koffi.ts";

/** fcntl.h: F_OFD_SETLK, F_WRLCK, SEEK_SET. */
const SET_LOCK = 37;
const WRITE = 1;
const FROM_START = 0;

type Fcntl = (descriptor: number, lock: object) => { readonly failed: boolean; readonly errno: number };

let opened: Promise<Fcntl> | undefined;

/**
 * Locks one byte of a file, which need not be there, for the open file description (fcntl_locking(2), "Open file
 * description locks"): the kernel lets go of it when the last descriptor is closed, `kill -9` included. Children do not
 * get it: Node opens all files with O_CLOEXEC.
 *
 * @param descriptor open for writing
 * @returns false: another program has it
 * @throws NativeCodeError when there is no compiled code for this machine, or the file system has no such locks
 */
export async function lockByte(descriptor: number, at: number | bigint): Promise<boolean> {
  opened ??= openFcntl();
  const call = await opened;
  const { failed, errno } = call(descriptor, { l_type: WRITE, l_whence: FROM_START, l_start: at, l_len: 1, l_pid: 0 });
  if (!failed) return true;
  const error = new NetlinkError("fcntl(F_OFD_SETLK)", errno);
  if (error.code === "EAGAIN" || error.code === "EACCES") return false;
  throw error;
}

async function openFcntl(): Promise<Fcntl> {
  const koffi = await loadKoffi();
  const lock = koffi.struct({ l_type: "short", l_whence: "short", l_start: "int64", l_len: "int64", l_pid: "int" });
  const fcntl = koffi.load(null).func("fcntl", "int", ["int", "int", "..."]);
  return (descriptor, value) => {
    const failed = fcntl(descriptor, SET_LOCK, koffi.pointer(lock), value) !== 0;
    return { failed, errno: koffi.errno() };
  };
}
