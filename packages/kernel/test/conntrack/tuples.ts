import { attribute, nest } from "@fairlead/netfilter/netlink";

export const port = (number: number) => Buffer.from([number >> 8, number & 0xff]);

/** One direction of an entry, as the kernel writes it. */
export function tuple(
  type: number,
  source: readonly number[],
  destination: readonly number[],
  ports: [number, number],
) {
  const [from, to] = source.length === 4 ? [1, 2] : [3, 4];
  return nest(
    type,
    nest(1, attribute(from, Buffer.from(source)), attribute(to, Buffer.from(destination))),
    nest(2, attribute(1, Buffer.from([17])), attribute(2, port(ports[0])), attribute(3, port(ports[1]))),
  );
}

const CLIENT = [10, 1, 1, 1];
export const original = tuple(1, CLIENT, [10, 96, 0, 10], [1000, 53]);
export const reply = tuple(2, [10, 144, 0, 5], CLIENT, [5353, 1000]);
