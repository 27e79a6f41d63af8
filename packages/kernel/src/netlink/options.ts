import { loadKoffi } from "./koffi.ts";

/** SOL_SOCKET and SOL_NETLINK with their options (asm-generic/socket.h, linux/netlink.h). */
const OPTIONS = {
  sendBuffer: [1, 7],
  sendBufferForce: [1, 32],
  receiveBuffer: [1, 8],
  receiveBufferForce: [1, 33],
  join: [270, 1],
  leave: [270, 2],
  capAck: [270, 10],
  extAck: [270, 11],
} as const;

export interface SocketOptions {
  /** @returns whether the kernel took it */
  set(option: keyof typeof OPTIONS, value: number): boolean;
  get(option: keyof typeof OPTIONS): number | undefined;
}

/** The options of a socket, by its descriptor. */
export async function optionsOf(descriptor: number): Promise<SocketOptions> {
  const koffi = await loadKoffi();
  const setsockopt = koffi.load(null).func("int setsockopt(int, int, int, void *, uint32_t)");
  const getsockopt = koffi.load(null).func("int getsockopt(int, int, int, void *, void *)");
  return {
    set: (option, value) =>
      setsockopt(descriptor, ...OPTIONS[option], Buffer.from(Int32Array.of(value).buffer), 4) === 0,
    get(option) {
      const [value, length] = [Buffer.alloc(4), Buffer.from(Int32Array.of(4).buffer)];
      return getsockopt(descriptor, ...OPTIONS[option], value, length) === 0 ? value.readInt32LE() : undefined;
    },
  };
}
